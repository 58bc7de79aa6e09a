package alfworld

import (
	"strings"

	"skillmaster/episode"
)

// joiner makes many short texts in few pieces of memory: that is quick, and leaves the garbage collector little to look
// at. A piece lives as long as any text in it.
type joiner struct{ piece strings.Builder }

// room sees that n more bytes fit into the piece, and tells where they start.
func (j *joiner) room(n int) int {
	if j.piece.Cap()-j.piece.Len() < n {
		j.piece = strings.Builder{}
		j.piece.Grow(max(n, 4096))
	}
	return j.piece.Len()
}

func (j *joiner) join(parts ...string) string {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	start := j.room(n)
	for _, p := range parts {
		j.piece.WriteString(p)
	}
	return j.piece.String()[start:]
}

func (j *joiner) action(parts ...string) episode.Action { return episode.Action(j.join(parts...)) }

// lower is strings.ToLower of ASCII.
func (j *joiner) lower(s string) string {
	start := j.room(len(s))
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		j.piece.WriteByte(c)
	}
	return j.piece.String()[start:]
}
