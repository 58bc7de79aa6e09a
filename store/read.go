package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"strconv"
	"time"

	"skillmaster/episode"
	"skillmaster/train"
)

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// query collects all rows of a query.
func query[T any](ctx context.Context, db querier, scan func(*sql.Rows) (T, error), sql string, args ...any) (out []T, err error) {
	rows, err := db.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// read runs f on one unchanging view of the records.
func (r *Run) read(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return explain(err)
	}
	return explain(errors.Join(f(tx), tx.Rollback()))
}

// Manifest is what the run is and how it was asked for.
func (r *Run) Manifest(ctx context.Context) (Manifest, error) {
	var m Manifest
	err := r.read(ctx, func(tx *sql.Tx) error {
		var config, seed, command, bank, created string
		if err := tx.QueryRowContext(ctx, "SELECT program, config, seed, world, command, bank, created FROM manifest").
			Scan(&m.Program, &config, &seed, &m.World, &command, &bank, &created); err != nil {
			return err
		}
		m.Config = json.RawMessage(config)
		s, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return err
		}
		m.Seed = episode.Seed(s)
		if err := json.Unmarshal([]byte(command), &m.Command); err != nil {
			return err
		}
		if m.Created, err = unstamp(created); err != nil {
			return err
		}
		if m.Bank, err = readBank(ctx, tx, bank); err != nil {
			return err
		}
		m.Panels, err = query(ctx, tx, scanPanel, "SELECT name, hash, tasks FROM panels ORDER BY place")
		return err
	})
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func scanPanel(rows *sql.Rows) (p Panel, err error) {
	var tasks string
	if err := rows.Scan(&p.Name, &p.Hash, &tasks); err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(tasks), &p.Tasks)
}

// Document returns a text that was kept with KeepDocument, or ErrNotFound.
func (r *Run) Document(ctx context.Context, name string) ([]byte, error) {
	var b []byte
	err := r.db.QueryRowContext(ctx, "SELECT content FROM documents WHERE name = ?", name).Scan(&b)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, explain(err))
	}
	return b, nil
}

// Round names a report.
type Round struct {
	Report int         `json:"report"` // sequence number, from 1
	Phase  train.Phase `json:"phase"`
	Round  int         `json:"round"` // within its phase, from 0
}

// Kept is a report's head.
type Kept struct {
	Round
	PolicyVersion int
	Bank          string
	Kept          time.Time
}

func phaseOf(name string) (train.Phase, error) {
	for p := train.WarmStart; p <= train.Finished; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%w: no phase is called %q", ErrDamaged, name)
}

// Reports lists those after a sequence number (0: all), in the order they were kept.
func (r *Run) Reports(ctx context.Context, after int) ([]Kept, error) {
	out, err := reports(ctx, r.db, after)
	return out, explain(err)
}

func reports(ctx context.Context, db querier, after int) ([]Kept, error) {
	return query(ctx, db, func(rows *sql.Rows) (k Kept, err error) {
		var phase, kept string
		if err = rows.Scan(&k.Report, &phase, &k.Round.Round, &k.PolicyVersion, &k.Bank, &kept); err != nil {
			return k, err
		}
		if k.Phase, err = phaseOf(phase); err != nil {
			return k, err
		}
		k.Kept, err = unstamp(kept)
		return k, err
	}, "SELECT seq, phase, round, policy_version, bank, kept FROM reports WHERE seq > ? ORDER BY seq", after)
}

// Point is one value of a series.
type Point struct {
	Round
	Key   string
	Value float64
}

// Metrics returns the points of one key, or of all ("") in the order of rounds and keys. What was not measured, or was
// not a finite number, is not there.
func (r *Run) Metrics(ctx context.Context, key string) ([]Point, error) {
	return r.points(ctx, "SELECT m.report, r.phase, r.round, m.key, m.value FROM metrics m JOIN reports r ON r.seq = m.report WHERE m.value IS NOT NULL AND (?1 = '' OR m.key = ?1) ORDER BY m.report, m.key", key)
}

// Seconds returns wall times like Metrics.
func (r *Run) Seconds(ctx context.Context, key string) ([]Point, error) {
	return r.points(ctx, "SELECT m.report, r.phase, r.round, m.key, m.value FROM seconds m JOIN reports r ON r.seq = m.report WHERE m.value IS NOT NULL AND (?1 = '' OR m.key = ?1) ORDER BY m.report, m.key", key)
}

func (r *Run) points(ctx context.Context, sqlText, key string) ([]Point, error) {
	out, err := query(ctx, r.db, func(rows *sql.Rows) (p Point, err error) {
		var phase string
		if err := rows.Scan(&p.Report, &phase, &p.Round.Round, &p.Key, &p.Value); err != nil {
			return p, err
		}
		p.Phase, err = phaseOf(phase)
		return p, err
	}, sqlText, key)
	return out, explain(err)
}

// Numbers is a report's head with all its numbers. What was not measured, or was not a finite number, is not there.
type Numbers struct {
	Kept
	Metrics   map[string]float64
	Seconds   map[string]float64 // wall time by part
	NotFinite []string           // keys of either that were measured and came to no finite number, sorted
}

// Numbers returns reports after a sequence number (0: all) with their numbers, all of one moment.
func (r *Run) Numbers(ctx context.Context, after int) ([]Numbers, error) {
	var out []Numbers
	err := r.read(ctx, func(tx *sql.Tx) error {
		heads, err := reports(ctx, tx, after)
		if err != nil {
			return err
		}
		place := map[int]int{}
		for i, k := range heads {
			place[k.Report] = i
			out = append(out, Numbers{Kept: k, Metrics: map[string]float64{}, Seconds: map[string]float64{}})
		}
		put := func(n *Numbers, into map[string]float64, key string, v sql.NullFloat64) {
			if v.Valid {
				into[key] = v.Float64
			} else {
				n.NotFinite = append(n.NotFinite, key)
			}
		}
		if err := eachNumber(ctx, tx, "SELECT report, key, value FROM metrics WHERE report > ? ORDER BY report, key", after, func(report int, key string, v sql.NullFloat64) {
			n := &out[place[report]]
			put(n, n.Metrics, key, v)
		}); err != nil {
			return err
		}
		return eachNumber(ctx, tx, "SELECT report, key, value FROM seconds WHERE report > ? ORDER BY report, key", after, func(report int, key string, v sql.NullFloat64) {
			n := &out[place[report]]
			put(n, n.Seconds, key, v)
		})
	})
	for i := range out {
		slices.Sort(out[i].NotFinite)
	}
	return out, err
}

func eachNumber(ctx context.Context, tx *sql.Tx, sqlText string, after int, f func(report int, key string, v sql.NullFloat64)) (err error) {
	rows, err := tx.QueryContext(ctx, sqlText, after)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var report int
		var key string
		var v sql.NullFloat64
		if err := rows.Scan(&report, &key, &v); err != nil {
			return err
		}
		f(report, key, v)
	}
	return rows.Err()
}

// Played is a trajectory's head.
type Played struct {
	Report        int
	Group, Member int
	Task          string
	Family        string
	Success       bool
	Steps         int
	EnvReturn     float64
	Bank          string
	PolicyVersion int
	Stop          episode.StopReason
	Outcome       string // of its review's edit; empty: no review
	Tokens        int
	Seed          episode.Seed
}

// Trajectories lists the trajectories of a report (0: of all), by group and member.
func (r *Run) Trajectories(ctx context.Context, report int) ([]Played, error) {
	out, err := query(ctx, r.db, func(rows *sql.Rows) (p Played, err error) {
		var stop, seed string
		if err := rows.Scan(&p.Report, &p.Group, &p.Member, &p.Task, &p.Family, &p.Success, &p.Steps, &p.EnvReturn,
			&p.Bank, &p.PolicyVersion, &stop, &p.Outcome, &p.Tokens, &seed); err != nil {
			return p, err
		}
		s, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return p, err
		}
		p.Seed = episode.Seed(s)
		return p, p.Stop.UnmarshalText([]byte(stop))
	}, `SELECT report, in_group, member, task, family, success, steps, env_return, bank, policy_version, stop, coalesce(outcome, ''), tokens, seed
		FROM trajectories WHERE ?1 = 0 OR report = ?1 ORDER BY report, in_group, member`, report)
	return out, explain(err)
}

// Recorded is a trajectory with what it was paid.
type Recorded struct {
	episode.Trajectory
	Credit *train.Credit `json:"credit,omitempty"` // nil: nothing was learnt from it
}

// Trajectory returns one trajectory whole, or ErrNotFound.
func (r *Run) Trajectory(ctx context.Context, report, group, member int) (Recorded, error) {
	var record []byte
	var t Recorded
	err := r.db.QueryRowContext(ctx, "SELECT record FROM trajectories WHERE report = ? AND in_group = ? AND member = ?", report, group, member).Scan(&record)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil {
		if record, err = unpackJSON(record); err != nil {
			err = fmt.Errorf("%w (%w)", ErrDamaged, err)
		}
	}
	if err == nil {
		err = json.Unmarshal(record, &t)
	}
	if err != nil {
		return Recorded{}, fmt.Errorf("trajectory %d of group %d of report %d: %w", member, group, report, explain(err))
	}
	return t, nil
}

// Seeded finds the trajectory of a report that was played with a seed, or ErrNotFound.
func (r *Run) Seeded(ctx context.Context, report int, seed uint64) (group, member int, err error) {
	err = r.db.QueryRowContext(ctx, "SELECT in_group, member FROM trajectories WHERE report = ? AND seed = ?", report, seedText(seed)).Scan(&group, &member)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return group, member, explain(err)
}

// Judgements returns the judgements of a report, in their order.
func (r *Run) Judgements(ctx context.Context, report int) ([]train.Judgement, error) {
	out, err := query(ctx, r.db, func(rows *sql.Rows) (j train.Judgement, err error) {
		var record string
		if err := rows.Scan(&record); err != nil {
			return j, err
		}
		return j, json.Unmarshal([]byte(record), &j)
	}, "SELECT record FROM judgements WHERE report = ? ORDER BY place", report)
	return out, explain(err)
}

// Tested is what the gate found in one report.
type Tested struct {
	train.Test
	Round
}

// Tests lists what the gate found in reports after a sequence number (0: all), in order.
func (r *Run) Tests(ctx context.Context, after int) ([]Tested, error) {
	out, err := query(ctx, r.db, func(rows *sql.Rows) (t Tested, err error) {
		var phase, record string
		if err := rows.Scan(&t.Report, &phase, &t.Round.Round, &record); err != nil {
			return t, err
		}
		if t.Phase, err = phaseOf(phase); err != nil {
			return t, err
		}
		return t, json.Unmarshal([]byte(record), &t.Test)
	}, "SELECT t.report, r.phase, r.round, t.record FROM tests t JOIN reports r ON r.seq = t.report WHERE t.report > ? ORDER BY t.report, t.place", after)
	return out, explain(err)
}

// Tally counts episodes and successes of a report by family and, in Uses, by a skill that stood in the prompt.
type Tally struct {
	Report   int
	Skill    string // only in Uses
	Family   string
	Episodes int
	Success  int
}

// Families counts episodes by family, for reports after a sequence number (0: all).
func (r *Run) Families(ctx context.Context, after int) ([]Tally, error) {
	return r.tallies(ctx, "SELECT report, '', family, count(*), sum(success) FROM trajectories WHERE report > ? GROUP BY report, family ORDER BY report, family", after)
}

// Uses counts episodes by skill and family, for reports after a sequence number (0: all).
func (r *Run) Uses(ctx context.Context, after int) ([]Tally, error) {
	return r.tallies(ctx, "SELECT report, skill, family, episodes, success FROM uses WHERE report > ? ORDER BY report, skill, family", after)
}

func (r *Run) tallies(ctx context.Context, sqlText string, after int) ([]Tally, error) {
	out, err := query(ctx, r.db, func(rows *sql.Rows) (t Tally, err error) {
		return t, rows.Scan(&t.Report, &t.Skill, &t.Family, &t.Episodes, &t.Success)
	}, sqlText, after)
	return out, explain(err)
}

// Evaluated is an evaluation as it was stored.
type Evaluated struct {
	train.Evaluation
	ID      int
	Report  int      // 0: made apart from training
	Command []string // only then
	Made    time.Time
}

// Evaluations lists all evaluations, in the order they were made, with their results.
func (r *Run) Evaluations(ctx context.Context) ([]Evaluated, error) {
	return r.EvaluationsAfter(ctx, 0)
}

// EvaluationsAfter is Evaluations for those after an id.
func (r *Run) EvaluationsAfter(ctx context.Context, id int) ([]Evaluated, error) {
	var out []Evaluated
	err := r.read(ctx, func(tx *sql.Tx) (err error) {
		out, err = query(ctx, tx, scanEvaluation, `SELECT id, coalesce(report, 0), panel, panel_hash, bank, policy_version, retrieval, online, seed,
			temperature, constrained, coalesce(command, 'null'), made FROM evaluations WHERE id > ? ORDER BY id`, id)
		for i := 0; i < len(out) && err == nil; i++ {
			out[i].Results, err = query(ctx, tx, scanResult, `SELECT task, family, success, steps, env_return, inadmissible, malformed, stop, actions
				FROM results WHERE evaluation = ? ORDER BY place`, out[i].ID)
		}
		return err
	})
	return out, err
}

func scanEvaluation(rows *sql.Rows) (e Evaluated, err error) {
	var seed, command, made string
	if err := rows.Scan(&e.ID, &e.Report, &e.Panel, &e.PanelHash, &e.Bank, &e.PolicyVersion, &e.Retrieval, &e.Online, &seed,
		&e.Temperature, &e.Constrained, &command, &made); err != nil {
		return e, err
	}
	s, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return e, err
	}
	e.Seed = episode.Seed(s)
	if err := json.Unmarshal([]byte(command), &e.Command); err != nil {
		return e, err
	}
	e.Made, err = unstamp(made)
	return e, err
}

func scanResult(rows *sql.Rows) (x train.Result, err error) {
	var stop, actions string
	if err := rows.Scan(&x.Task, &x.Family, &x.Success, &x.Steps, &x.Return, &x.Inadmissible, &x.Malformed, &stop, &actions); err != nil {
		return x, err
	}
	if err := x.Stop.UnmarshalText([]byte(stop)); err != nil {
		return x, err
	}
	return x, json.Unmarshal([]byte(actions), &x.Actions)
}

// digested are the records that two equal runs share: all but times, the command line, the config (it may name things
// of the machine), banks nobody committed, evaluations made apart, and checkpoints before the newest.
var digested = []string{
	"SELECT seed, world, bank FROM manifest",
	"SELECT place, name, hash, tasks FROM panels ORDER BY place",
	"SELECT name, content FROM documents ORDER BY name",
	"SELECT seq, phase, round, policy_version, bank FROM reports ORDER BY seq",
	"SELECT report, key, value FROM metrics ORDER BY report, key",
	"SELECT report, in_group, member, outcome, record FROM trajectories ORDER BY report, in_group, member",
	"SELECT report, place, record FROM judgements ORDER BY report, place",
	"SELECT report, place, iteration, seed, decision, record FROM tests ORDER BY report, place",
	"SELECT seq, report, kind, parent, hash, outcome, reason, record FROM commits ORDER BY seq",
	`SELECT report, panel, panel_hash, bank, policy_version, retrieval, online, seed, temperature, constrained FROM evaluations
		WHERE report IS NOT NULL ORDER BY id`,
	`SELECT e.report, r.place, r.task, r.success, r.steps, r.env_return, r.inadmissible, r.malformed, r.stop, r.actions
		FROM results r JOIN evaluations e ON e.id = r.evaluation WHERE e.report IS NOT NULL ORDER BY e.id, r.place`,
	"SELECT report, size, sha256, bank, score, warm, best, record FROM checkpoints ORDER BY number DESC LIMIT 1",
}

// Digest is a hash over what the run brought, times left aside: two runs from the same seed have the same digest, also
// if one was stopped and resumed. It covers the newest checkpoint's weights by their SHA-256.
func (r *Run) Digest(ctx context.Context) (string, error) {
	h := sha256.New()
	err := r.read(ctx, func(tx *sql.Tx) error {
		for _, q := range digested {
			h.Write([]byte(q))
			if err := digestRows(ctx, tx, h, q); err != nil {
				return err
			}
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func digestRows(ctx context.Context, tx *sql.Tx, h hash.Hash, q string) (err error) {
	rows, err := tx.QueryContext(ctx, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for i, v := range values {
			if err := digestValue(h, v); err != nil {
				return fmt.Errorf("%s: %w", columns[i], err)
			}
		}
	}
	return rows.Err()
}

// digestValue hashes a value with its type and length, so that no two rows read alike.
func digestValue(h hash.Hash, v any) error {
	var kind byte
	var b []byte
	switch v := v.(type) {
	case nil:
		kind = 'n'
	case int64:
		kind, b = 'i', binary.LittleEndian.AppendUint64(nil, uint64(v))
	case float64:
		kind, b = 'f', binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case string:
		kind, b = 's', []byte(v)
	case []byte:
		kind, b = 'b', v
		if z, err := unpackJSON(v); err == nil {
			b = z // the compressed form may differ between versions of Go
		}
	default:
		return fmt.Errorf("no digest of a %T", v)
	}
	h.Write(binary.LittleEndian.AppendUint64([]byte{kind}, uint64(len(b))))
	h.Write(b)
	return nil
}
