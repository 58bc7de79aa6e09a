package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"skillmaster/train"
)

// keepNewest is how many checkpoints keep their file besides the best one and the end of the warm start.
const keepNewest = 2

// Keep stores a report and, if there is one, a checkpoint: the learner's state in a file first, then all records in
// one transaction, so that after a crash at any moment either all of it is there or nothing. Checkpoint files beyond
// the newest two are then removed, but for the end of the warm start and the one that first reached the best score.
// A metric that is not a finite number is recorded as such and read as absent; one inside a trajectory, verdict or
// checkpoint is an error. A commit whose parent is not the current bank is ErrConflict, a full disk ErrFull.
func (r *Run) Keep(ctx context.Context, rep train.Report, c *train.Checkpoint, weights func(io.Writer) error) error {
	if r.lock == nil {
		return ErrReadOnly
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := prepare(rep, stamp(r.now()))
	if err != nil {
		return fmt.Errorf("keep round %d of %s: %w", rep.Round, rep.Phase, err)
	}
	if c != nil {
		if p.checkpoint, err = r.writeCheckpoint(ctx, *c, weights); err != nil {
			return fmt.Errorf("write checkpoint: %w", explain(err))
		}
	}
	if err := r.disk.transact(ctx, r.db, func(tx *sql.Tx) error { return p.put(ctx, tx) }); err != nil {
		return fmt.Errorf("keep round %d of %s: %w", rep.Round, rep.Phase, explain(err))
	}
	if c == nil {
		return nil
	}
	return r.removeFiles(ctx)
}

// prepared is a report encoded, so that nothing but the disk can go wrong once it is being written.
type prepared struct {
	train.Report
	kept         string
	seq          int64 // set when it is put
	trajectories [][]packed
	verdicts     []string // of Judgements, JSON
	tests        []string // JSON
	commits      []string // of Commits, JSON
	actions      [][]string
	checkpoint   *saving
}

// packed is a trajectory ready to be stored.
type packed struct {
	outcome any    // of its review, as text; nil: no review
	record  []byte // JSON, gzip
}

func prepare(rep train.Report, kept string) (*prepared, error) {
	p := &prepared{Report: rep, kept: kept}
	for g, group := range rep.Groups {
		var ts []packed
		for m, t := range group.Trajectories {
			whole := Recorded{Trajectory: t}
			if len(rep.Credits) > 0 {
				whole.Credit = &rep.Credits[g][m]
			}
			record, err := pack(whole)
			if err != nil {
				return nil, fmt.Errorf("trajectory %d of group %d (task %s): %w", m, g, t.Task.ID, err)
			}
			e := packed{record: record}
			if t.Review != nil {
				e.outcome = t.Review.Outcome.String()
			}
			ts = append(ts, e)
		}
		p.trajectories = append(p.trajectories, ts)
	}
	var err error
	if p.verdicts, err = texts(rep.Judgements); err != nil {
		return nil, fmt.Errorf("judgement: %w", err)
	}
	if p.tests, err = texts(rep.Tests); err != nil {
		return nil, fmt.Errorf("test of an edit: %w", err)
	}
	if p.commits, err = texts(rep.Commits); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	for _, e := range rep.Evaluations {
		a, err := prepareEvaluation(e)
		if err != nil {
			return nil, err
		}
		p.actions = append(p.actions, a)
	}
	return p, nil
}

func texts[T any](vs []T) ([]string, error) {
	out := make([]string, len(vs))
	for i, v := range vs {
		s, err := text(v)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// prepareEvaluation returns the action lists of an evaluation's results as JSON.
func prepareEvaluation(e train.Evaluation) ([]string, error) {
	if !finite(e.Temperature) {
		return nil, fmt.Errorf("evaluation of panel %s: its temperature is %v", e.Panel, e.Temperature)
	}
	out := make([]string, len(e.Results))
	for i, x := range e.Results {
		if !finite(x.Return) {
			return nil, fmt.Errorf("evaluation of panel %s, task %s: its return is %v", e.Panel, x.Task, x.Return)
		}
		s, err := text(x.Actions)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// pack is a value as JSON, compressed. The same value gives the same bytes.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unpackJSON(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// put writes all rows of a report.
func (p *prepared) put(ctx context.Context, tx *sql.Tx) error {
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) + 1 FROM reports").Scan(&p.seq); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO reports (seq, phase, round, policy_version, bank, kept) VALUES (?, ?, ?, ?, ?, ?)",
		p.seq, p.Phase.String(), p.Round, p.PolicyVersion, p.Bank, p.kept); err != nil {
		return err
	}
	for _, part := range []func(context.Context, *sql.Tx) error{p.putNumbers, p.putTrajectories, p.putUses, p.putJudgements, p.putTests, p.putCommits, p.putEvaluations, p.putCheckpoint} {
		if err := part(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func (p *prepared) putNumbers(ctx context.Context, tx *sql.Tx) error {
	for _, t := range []struct {
		insert string
		values map[string]float64
	}{
		{"INSERT INTO metrics (report, key, value) VALUES (?, ?, ?)", p.Metrics},
		{"INSERT INTO seconds (report, key, value) VALUES (?, ?, ?)", p.Seconds},
	} {
		for key, v := range t.values {
			var value any
			if finite(v) {
				value = v
			}
			if _, err := tx.ExecContext(ctx, t.insert, p.seq, key, value); err != nil {
				return fmt.Errorf("metric %s: %w", key, err)
			}
		}
	}
	return nil
}

func (p *prepared) putTrajectories(ctx context.Context, tx *sql.Tx) (err error) {
	insert, err := tx.PrepareContext(ctx, `INSERT INTO trajectories (report, in_group, member, task, family, category, success, steps,
		env_return, bank, policy_version, seed, stop, outcome, tokens, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for g, group := range p.Groups {
		for m, t := range group.Trajectories {
			e := p.trajectories[g][m]
			if _, err := insert.ExecContext(ctx, p.seq, g, m, t.Task.ID, t.Task.Family, t.Task.Category, t.Success, len(t.Steps), t.EnvReturn,
				t.BankHash, t.PolicyVersion, seedText(uint64(t.Seed)), t.Stop.String(), e.outcome, t.Tokens(), e.record); err != nil {
				return fmt.Errorf("trajectory %d of group %d: %w", m, g, err)
			}
		}
	}
	return nil
}

// putUses counts, by skill and family, the episodes that had the skill in their prompt.
func (p *prepared) putUses(ctx context.Context, tx *sql.Tx) error {
	for _, group := range p.Groups {
		for _, t := range group.Trajectories {
			for _, id := range t.ShownSkills {
				if _, err := tx.ExecContext(ctx, `INSERT INTO uses (report, skill, family, episodes, success) VALUES (?1, ?2, ?3, 1, ?4)
					ON CONFLICT (report, skill, family) DO UPDATE SET episodes = episodes + 1, success = success + ?4`,
					p.seq, id, t.Task.Family, t.Success); err != nil {
					return fmt.Errorf("uses of skill %s: %w", id, err)
				}
			}
		}
	}
	return nil
}

func (p *prepared) putTests(ctx context.Context, tx *sql.Tx) error {
	for i, t := range p.Tests {
		from := t.Pending.Provenance
		if _, err := tx.ExecContext(ctx, "INSERT INTO tests (report, place, iteration, seed, decision, record) VALUES (?, ?, ?, ?, ?, ?)",
			p.seq, i, from.Iteration, seedText(from.Seed), t.Decision.String(), p.tests[i]); err != nil {
			return fmt.Errorf("test %d: %w", i, err)
		}
	}
	return nil
}

func (p *prepared) putJudgements(ctx context.Context, tx *sql.Tx) error {
	for i, j := range p.Judgements {
		var utility any
		if j.Verdict.Measured {
			utility = j.Verdict.Utility
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO judgements (report, place, in_group, member, measured, utility, wins, losses, record)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			p.seq, i, j.Group, j.Member, j.Verdict.Measured, utility, j.Verdict.Wins, j.Verdict.Losses, p.verdicts[i]); err != nil {
			return fmt.Errorf("judgement %d: %w", i, err)
		}
	}
	return nil
}

func (p *prepared) putEvaluations(ctx context.Context, tx *sql.Tx) error {
	for i, e := range p.Evaluations {
		if err := putEvaluation(ctx, tx, e, p.actions[i], p.seq, nil, p.kept); err != nil {
			return err
		}
	}
	return nil
}

// putEvaluation stores an evaluation; report and command may be nil.
func putEvaluation(ctx context.Context, tx *sql.Tx, e train.Evaluation, actions []string, report, command any, made string) error {
	done, err := tx.ExecContext(ctx, `INSERT INTO evaluations (report, panel, panel_hash, bank, policy_version, retrieval, online, seed, temperature, constrained, command, made)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		report, e.Panel, e.PanelHash, e.Bank, e.PolicyVersion, e.Retrieval, e.Online, seedText(uint64(e.Seed)), e.Temperature, e.Constrained, command, made)
	if err != nil {
		return fmt.Errorf("evaluation of panel %s: %w", e.Panel, err)
	}
	id, err := done.LastInsertId()
	if err != nil {
		return err
	}
	for i, x := range e.Results {
		if _, err := tx.ExecContext(ctx, `INSERT INTO results (evaluation, place, task, family, success, steps, env_return, inadmissible, malformed, stop, actions)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, i, x.Task, x.Family, x.Success, x.Steps, x.Return, x.Inadmissible, x.Malformed, x.Stop.String(), actions[i]); err != nil {
			return fmt.Errorf("result of task %s: %w", x.Task, err)
		}
	}
	return nil
}

// Record stores an evaluation that was made apart from training, with the command that made it. It may be called while
// another process trains.
func (r *Run) Record(ctx context.Context, e train.Evaluation, command []string) error {
	actions, err := prepareEvaluation(e)
	if err != nil {
		return err
	}
	line, err := text(command)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return explain(r.disk.transact(ctx, r.db, func(tx *sql.Tx) error {
		return putEvaluation(ctx, tx, e, actions, nil, line, stamp(r.now()))
	}))
}

// KeepDocument stores a text that belongs to the run, such as its tokenizer, and puts a copy for people beside it.
func (r *Run) KeepDocument(ctx context.Context, name string, content []byte) error {
	if r.lock == nil {
		return ErrReadOnly
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.db.ExecContext(ctx, "INSERT OR REPLACE INTO documents (name, content) VALUES (?, ?)", name, content); err != nil {
		return fmt.Errorf("keep %s: %w", name, explain(err))
	}
	_, err := r.disk.write(r.path(name), bytesWriter(content))
	return err
}
