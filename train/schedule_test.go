package train

import (
	"math"
	"testing"
)

func TestScheduleByHand(t *testing.T) {
	for _, c := range []struct {
		s           Schedule
		done, floor float64
		want        float64
	}{
		{Constant, 0.9, 0.1, 1},
		{Linear, 0, 0.1, 1},
		{Linear, 0.25, 0.1, 0.75},
		{Linear, 0.95, 0.1, 0.1},
		{Linear, 2, 0, 0},
		{Cosine, -1, 0.1, 1},
		{Cosine, 0, 0.1, 1},
		{Cosine, 0.5, 0.1, 0.55},
		{Cosine, 1. / 3, 0, 0.75},
		{Cosine, 1, 0.1, 0.1},
	} {
		if got := c.s.share(c.done, c.floor); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v at %v with floor %v: got %v, want %v", c.s, c.done, c.floor, got, c.want)
		}
	}
}

// Rates rise to the highest, stay where they are to stay, and fall to the floor at the end.
func TestRates(t *testing.T) {
	c := Default()
	c.Iterations = 20
	learn := c.Learn // rises over 5 iterations
	learn.Rate, learn.RateFloor = 2, 0.25
	warm := WarmConfig{Updates: 100, Rate: 3, RateWarmUp: 10, Flat: 0.5, RateFloor: 0.2}
	for _, v := range []struct {
		s           Schedule
		learn, warm [4]float64 // iterations 0, 5, 10, 20; updates 0, 50, 75, 100
	}{
		{Constant, [4]float64{0.4, 2, 2, 2}, [4]float64{0.3, 3, 3, 3}},
		{Linear, [4]float64{0.4, 2, 2 * (1 - 5./15), 0.5}, [4]float64{0.3, 3, 1.5, 0.6}},
		{Cosine, [4]float64{0.4, 2, 2 * (0.25 + 0.75*0.75), 0.5}, [4]float64{0.3, 3, 3 * 0.6, 0.6}},
	} {
		learn.Schedule, warm.Schedule = v.s, v.s
		for i, at := range []int{0, 5, 10, 20} {
			if got := learn.optim(at, c.Iterations).Rate; math.Abs(got-v.learn[i]) > 1e-12 {
				t.Errorf("%v: iteration %d has rate %v, want %v", v.s, at, got, v.learn[i])
			}
		}
		for i, at := range []int{0, 50, 75, 100} {
			if got := warm.optim(at).Rate; math.Abs(got-v.warm[i]) > 1e-12 {
				t.Errorf("%v: update %d has rate %v, want %v", v.s, at, got, v.warm[i])
			}
		}
	}
	learn.RateWarmUp = 30 // longer than the run
	if got := learn.optim(19, 20).Rate; math.Abs(got-2*20./30) > 1e-12 {
		t.Errorf("got %v while the rate still rises", got)
	}
}

func TestScheduleText(t *testing.T) {
	for s := range schedules {
		b, err := s.MarshalText()
		var again Schedule
		if err != nil || again.UnmarshalText(b) != nil || again != s || s.String() != string(b) {
			t.Errorf("%s is read as %v", b, again)
		}
	}
	if err := new(Schedule).UnmarshalText([]byte("step")); err == nil {
		t.Error("a schedule called step was accepted")
	}
	if _, err := schedules.MarshalText(); err == nil {
		t.Error("what is no schedule was written")
	}
}
