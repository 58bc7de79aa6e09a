package train

import (
	"fmt"
	"math"
)

// Schedule is how a learning rate falls once it has risen.
type Schedule uint8

// The schedules.
const (
	Constant  Schedule = iota // it does not
	Linear                    // along a line to 0, but not below the floor
	Cosine                    // along half a cosine to the floor (Loshchilov and Hutter 2017, arXiv:1608.03983, eq. 5, without restarts)
	schedules                 // their number
)

var scheduleNames = [schedules]string{"constant", "linear", "cosine"}

// share is the rate's share of its highest when a share done of the fall, within 0…1, is behind it.
func (s Schedule) share(done, floor float64) float64 {
	done = min(1, max(0, done))
	switch s {
	case Constant:
		return 1
	case Linear:
		return max(floor, 1-done)
	case Cosine:
		return floor + (1-floor)*(1+math.Cos(math.Pi*done))/2
	}
	panic(fmt.Sprintf("train: schedule %d", uint8(s)))
}

func (s Schedule) String() string {
	if s < schedules {
		return scheduleNames[s]
	}
	return fmt.Sprintf("schedule %d", uint8(s))
}

// MarshalText writes the schedule's name.
func (s Schedule) MarshalText() ([]byte, error) {
	if s >= schedules {
		return nil, fmt.Errorf("unknown schedule %d", uint8(s))
	}
	return []byte(scheduleNames[s]), nil
}

// UnmarshalText reads a schedule's name.
func (s *Schedule) UnmarshalText(text []byte) error {
	for i, name := range scheduleNames {
		if name == string(text) {
			*s = Schedule(i)
			return nil
		}
	}
	return fmt.Errorf("unknown schedule %q, known are %v", text, scheduleNames)
}
