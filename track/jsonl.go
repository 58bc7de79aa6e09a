package track

import (
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// head is what a line says of its round, before the numbers. Their keys have a slash and these have none.
type head struct {
	Step          int       `json:"step"`
	Phase         string    `json:"phase"`
	Round         int       `json:"round"`
	PolicyVersion int       `json:"policy_version"`
	Bank          string    `json:"bank"`
	Time          time.Time `json:"time"`
}

// WriteJSONL writes an object a line, one for each round: step, phase, round, policy_version, bank, time, and then its
// numbers by key. What was not measured is not there; what was and is no finite number is null. The same rounds give the
// same bytes.
func WriteJSONL(w io.Writer, rounds []Round) error {
	for _, r := range rounds {
		line, err := json.Marshal(head{r.Report, r.Phase.String(), r.Round.Round, r.PolicyVersion, r.Bank, r.Kept.Kept.UTC()})
		if err != nil {
			return err
		}
		numbers := make(map[string]any, len(r.Values)+len(r.NotFinite))
		for k, v := range r.Values {
			numbers[k] = v
		}
		for _, k := range r.NotFinite {
			numbers[k] = nil
		}
		rest, err := json.Marshal(numbers)
		if err != nil {
			return err
		}
		if len(numbers) > 0 { // one object out of both
			line = append(append(bytes.TrimSuffix(line, []byte("}")), ','), rest[1:]...)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}
