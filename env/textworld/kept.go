package textworld

import "sync"

// mostKept is how many games stay in memory, about 1 MB each.
const mostKept = 256

// Kept holds the games that were asked for last, so that a folder of thousands fits in memory. The zero Kept is ready
// for use; it is safe for concurrent use.
type Kept struct {
	mu    sync.Mutex
	clock int
	games map[string]*keptGame
}

type keptGame struct {
	last int // when it was asked for, by clock
	once sync.Once
	game *Game
	err  error
}

// Game returns a game that is kept, or loads it. Nobody loads one twice at the same time.
func (k *Kept) Game(id string, load func() (*Game, error)) (*Game, error) {
	g := k.get(id)
	g.once.Do(func() { g.game, g.err = load() })
	return g.game, g.err
}

func (k *Kept) get(id string) *keptGame {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clock++
	g := k.games[id]
	if g == nil {
		if k.games == nil {
			k.games = map[string]*keptGame{}
		}
		if len(k.games) >= mostKept {
			k.dropOldest()
		}
		g = &keptGame{}
		k.games[id] = g
	}
	g.last = k.clock
	return g
}

func (k *Kept) dropOldest() {
	oldest := ""
	for id, g := range k.games {
		if oldest == "" || g.last < k.games[oldest].last {
			oldest = id
		}
	}
	delete(k.games, oldest)
}
