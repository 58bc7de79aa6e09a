package track_test

import (
	"log"
	"os"
	"time"

	"skillmaster/store"
	"skillmaster/track"
)

// What was not measured is not there; what was and is no number is null.
func ExampleWriteJSONL() {
	kept := store.Kept{}
	kept.Kept = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := track.WriteJSONL(os.Stdout, []track.Round{{Kept: kept, Values: map[string]float64{"action/success": 0.5}, NotFinite: []string{"learn/loss"}}})
	if err != nil {
		log.Fatal(err)
	}
	// Output: {"step":0,"phase":"warm start","round":0,"policy_version":0,"bank":"","time":"2026-01-02T03:04:05Z","action/success":0.5,"learn/loss":null}
}
