package policy

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Throttle is a Policy through which at most so many ids are in flight: those of prompts that are answered, and those that
// may still be sampled. A server's memory is bounded by them, not by the number of requests. Further requests wait, in the
// order in which they came. Safe for concurrent use.
type Throttle struct {
	policy Policy
	most   int64
	room   *semaphore.Weighted
	now    atomic.Int64
	peak   atomic.Int64
}

// NewThrottle returns p behind a limit of ids; it panics if there is room for none. A request that is larger than the
// limit goes alone.
func NewThrottle(p Policy, ids int) *Throttle {
	if ids < 1 {
		panic(fmt.Sprintf("policy: a throttle with room for %d ids", ids))
	}
	return &Throttle{policy: p, most: int64(ids), room: semaphore.NewWeighted(int64(ids))}
}

// bytesPerID is what a message not yet turned into ids is counted with: English in the vocabulary of a language model has
// about four, so that the count is more likely too high than too low.
const bytesPerID = 3

// InFlight is how many ids a request is counted with: Prior and MaxTokens exactly, and messages beyond Prior by their bytes.
func InFlight(r Request) int {
	n := 0
	for _, m := range r.Messages[min(r.Seen, len(r.Messages)):] {
		n += len(m.Text)
	}
	return len(r.Prior) + (n+bytesPerID-1)/bytesPerID + r.Sampling.MaxTokens
}

// Complete waits for room and hands the request on.
func (t *Throttle) Complete(ctx context.Context, r Request) (Completion, error) {
	n := min(int64(InFlight(r)), t.most)
	if err := t.room.Acquire(ctx, n); err != nil {
		return Completion{}, err
	}
	defer t.room.Release(n)
	t.raise(t.now.Add(n))
	defer t.now.Add(-n)
	return t.policy.Complete(ctx, r)
}

func (t *Throttle) raise(now int64) {
	for {
		peak := t.peak.Load()
		if now <= peak || t.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}

// Peak is the most ids that were in flight at a time.
func (t *Throttle) Peak() int { return int(t.peak.Load()) }
