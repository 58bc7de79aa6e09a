package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skillmaster/skill"
)

// Current is the bank a change starts from.
type Current struct {
	Hash string
	Bank skill.Bank
	// Damage says why the stored bank cannot be read; Bank is then the empty one, but that it gives no id again that a
	// readable bank of the run has given.
	Damage error
}

// Amend changes the current bank of a run that nobody trains. It reads the bank without keeping others out, lets next make
// a commit of it (Parent is set here), and appends that only if the bank is still the current one: otherwise next is
// called anew with the one that is, while others wait. So of any number of processes each loses no edit and repeats none.
// Rounds after the newest checkpoint are taken back first, as resuming does; tell hears of that and of damaged
// checkpoints. A process that has the run open for writing is waited for as long as wait says (ErrLocked).
func Amend(
	ctx context.Context, dir string, wait time.Duration, now func() time.Time, k Kind, tell func(string),
	next func(ctx context.Context, r *Run, c Current) (skill.Commit, error),
) (skill.Commit, error) {
	v, err := View(ctx, dir, now)
	if err != nil {
		return skill.Commit{}, err
	}
	c, err := v.propose(ctx, next)
	if err := errors.Join(err, v.Close()); err != nil {
		return skill.Commit{}, err
	}
	r, err := Open(ctx, dir, wait, now)
	if err != nil {
		return skill.Commit{}, err
	}
	defer r.Close()
	err = r.append(ctx, c, k, tell)
	if !errors.Is(err, ErrConflict) {
		return c, err
	}
	if c, err = r.propose(ctx, next); err != nil {
		return skill.Commit{}, err
	}
	return c, r.append(ctx, c, k, tell)
}

// propose lets next make a commit of the current bank.
func (r *Run) propose(ctx context.Context, next func(context.Context, *Run, Current) (skill.Commit, error)) (skill.Commit, error) {
	var cur Current
	var err error
	if cur.Hash, err = r.Head(ctx); err != nil {
		return skill.Commit{}, err
	}
	cur.Bank, err = readBank(ctx, r.db, cur.Hash)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotFound) {
		cur.Damage = err
		cur.Bank, err = r.blank(ctx)
	}
	if err != nil {
		return skill.Commit{}, err
	}
	c, err := next(ctx, r, cur)
	c.Parent, c.Hash = cur.Hash, c.Bank.Hash()
	return c, err
}

// blank is the empty bank, whose ids go on after those of every bank that can be read.
func (r *Run) blank(ctx context.Context) (skill.Bank, error) {
	hashes, err := query(ctx, r.db, scanText, "SELECT hash FROM banks ORDER BY rowid")
	var b skill.Bank
	for _, h := range hashes {
		if old, err := readBank(ctx, r.db, h); err == nil {
			b = b.Continue(old)
		}
	}
	return b, explain(err)
}

// append is Append, after rounds that are in its way were taken back.
func (r *Run) append(ctx context.Context, c skill.Commit, k Kind, tell func(string)) error {
	err := r.Append(ctx, c, k)
	if !errors.Is(err, ErrLoose) {
		return err
	}
	saved, damaged, err := r.Latest(ctx)
	for _, d := range damaged {
		tell("warning: " + d.String())
	}
	if err != nil && !errors.Is(err, ErrNoCheckpoint) {
		return err
	}
	back, err := r.Rewind(ctx, saved)
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("%d rounds after the newest checkpoint were taken back; training plays them again", back.Reports))
	return r.Append(ctx, c, k)
}
