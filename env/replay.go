package env

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Replayer is a Suite that can play recordings of the original world again.
type Replayer interface {
	// Replay plays the recording of that name in a folder and compares every word; what the world needs to play it may
	// lie beside it. The error is for a recording that cannot be read; a difference is no error.
	Replay(ctx context.Context, folder fs.FS, name string) (Replayed, error)
}

// Replayed is what came of playing a recording again.
type Replayed struct {
	Episodes, Steps int       // played and compared
	Skipped         []Skipped // what could not be played
	// Unparsable counts actions of evaluation runs that are the tail of a reply without an action: those recordings
	// count them apart from inadmissible ones.
	Unparsable int
	// First is where the recording and this world part; nil if they never do. Replaying stops there.
	First *Difference
}

// Skipped is a task or a recording that could not be used.
type Skipped struct{ ID, Reason string }

// Difference is a place where a recording says one thing and this world another.
type Difference struct {
	Record    int    // number of the episode in the recording, from 1
	Task      string // id
	Step      int    // from 1; 0 is the first observation, the number of steps plus one the end
	Action    string
	What      string // "observation", "admissible actions", "reward", "done", "success", …
	Got, Want string // of this world, of the recording
}

func (d *Difference) Error() string {
	return fmt.Sprintf("episode %d, task %s, step %d (%q): %s: got %q, recorded is %q", d.Record, d.Task, d.Step, d.Action, d.What, d.Got, d.Want)
}

// Records calls play with each record of a recording, packed or not, and its number from 1, until one is an error, which
// is given back with that number.
func Records(recording io.Reader, play func(n int, record json.RawMessage) error) error {
	d, err := recordDecoder(recording)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		var raw json.RawMessage
		if err = d.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = play(n, raw)
		}
		if err != nil {
			return fmt.Errorf("recording, episode %d: %w", n, err)
		}
	}
}

func recordDecoder(recording io.Reader) (*json.Decoder, error) {
	b := bufio.NewReader(recording)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return json.NewDecoder(b), nil // an empty recording has no episodes
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("unpack the recording: %w", err)
	}
	return json.NewDecoder(z), nil
}
