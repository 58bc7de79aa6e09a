package alfworld

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"skillmaster/env/textworld"
)

// Names of a trial's files.
const (
	gameFileName  = "game.tw-pddl"
	trialFileName = "traj_data.json"
)

// gameFile is a game.tw-pddl. Solvable is nil where it is missing or null.
type gameFile struct {
	Domain      string   `json:"pddl_domain"`
	Grammar     string   `json:"grammar"`
	Problem     string   `json:"pddl_problem"`
	Solvable    *bool    `json:"solvable"`
	Walkthrough []string `json:"walkthrough,omitempty"`
}

// readSplit reads the folders of a split: <task>/<trial>/. It leaves out what the original leaves out, and counts it:
// folders of tasks with movable receptacles or sliced objects, without game file, or not solvable.
func (ls layers) readSplit(ctx context.Context, split string, w watch) (found, error) {
	ids, err := ls.trials(ctx, split)
	if err != nil {
		return found{}, err
	}
	all := make([]outcome, len(ids))
	var known wordingMemo
	var kept textworld.Kept
	if err := inParallel(ctx, len(ids), w, func(i int) { all[i] = ls.readTrial(ids[i], &known, &kept) }); err != nil {
		return found{}, err
	}
	return gather(all), nil
}

// trials lists <split>/<task>/<trial>, sorted.
func (ls layers) trials(ctx context.Context, split string) ([]string, error) {
	tasks, err := ls.folders(split)
	if err != nil {
		return nil, err
	}
	ids, errs := make([][]string, len(tasks)), make([]error, len(tasks))
	err = inParallel(ctx, len(tasks), nil, func(i int) {
		task := split + "/" + tasks[i]
		ids[i], errs[i] = ls.folders(task)
		for k, trial := range ids[i] {
			ids[i][k] = task + "/" + trial
		}
	})
	return slices.Concat(ids...), errors.Join(err, errors.Join(errs...))
}

// texts are the wording and the rule texts of the first game file that has released ones, looked for in the first few of
// each split; Move and none if there is no such file. Texts since release 0.4 are preferred: they can be put in the older
// wording.
func (ls layers) texts(splits []string) (Wording, Texts) {
	const few = 20
	wording, texts := Move, Texts{}
	for _, split := range splits {
		tasks, err := ls.folders(split)
		if err != nil {
			continue // reading the split will say so
		}
		for _, task := range tasks[:min(few, len(tasks))] {
			t := ls.textsOf(split + "/" + task)
			w, err := t.Wording()
			if err != nil {
				continue
			}
			if texts == (Texts{}) {
				wording, texts = w, t
			}
			if w == Move {
				return wording, t
			}
		}
	}
	return wording, texts
}

// textsOf are the texts of a task's first trial; none if it cannot be read.
func (ls layers) textsOf(task string) Texts {
	trials, err := ls.folders(task)
	if err != nil || len(trials) == 0 {
		return Texts{}
	}
	b, _, err := ls.read(task + "/" + trials[0] + "/" + gameFileName)
	var f gameFile
	if err != nil || f.decode(b) != nil {
		return Texts{}
	}
	return Texts{Domain: f.Domain, Grammar: f.Grammar}
}

func (ls layers) readTrial(id string, known *wordingMemo, kept *textworld.Kept) outcome {
	skip := func(reason string) outcome { return outcome{skipped: &Skipped{ID: id, Reason: reason}} }
	if strings.Contains(id, "movable") || strings.Contains(id, "Sliced") {
		return skip(ErrUnsupported.Error())
	}
	b, path, err := ls.read(id + "/" + gameFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return skip("no " + gameFileName)
	}
	if err != nil {
		return outcome{err: fmt.Errorf("%s: %w", path, err)}
	}
	var f gameFile
	if err := f.decode(b); err != nil {
		return outcome{err: fmt.Errorf("%s: %w (is the file complete? unpack it again)", path, err)}
	}
	if f.Solvable == nil || !*f.Solvable {
		return skip("not marked as solvable")
	}
	said, err := ls.readAnnotations(id)
	if err != nil {
		return outcome{err: err}
	}
	g, err := f.game(id, said, known)
	if errors.Is(err, ErrTexts) || errors.Is(err, ErrUnsupported) {
		return ls.readGeneral(id, &f, err, kept)
	}
	o := outcome{game: g, err: err}
	if o.err != nil {
		o.err = fmt.Errorf("%s: %w", path, o.err)
	}
	return o
}

// readAnnotations reads people's sentences for the goal from a trial's traj_data.json; none if there is no such file, as
// in the archive of the text games.
func (ls layers) readAnnotations(id string) ([]string, error) {
	b, path, err := ls.read(id + "/" + trialFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var data turkData
	if err == nil {
		err = atLine(b, checkUTF8(b))
	}
	if err == nil {
		err = atLine(b, data.decode(b))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (is the file complete? unpack it again)", path, err)
	}
	var said []string
	for _, a := range data.Annotations {
		said = append(said, a.Task)
	}
	return said, nil
}

// atLine says in which line of a text it is no JSON, or other JSON than is wanted, or not UTF-8.
func atLine(text []byte, err error) error {
	var (
		syntax   *json.SyntaxError
		kind     *json.UnmarshalTypeError
		encoding *encodingError
		at       int
	)
	switch {
	case errors.As(err, &syntax):
		at = int(syntax.Offset)
	case errors.As(err, &kind):
		at = int(kind.Offset)
	case errors.As(err, &encoding):
		at = encoding.at
	default:
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(at, len(text))], []byte("\n")), err)
}

// decode passes over fields it does not know: the original engine does, and files may have some.
func (f *gameFile) decode(b []byte) error {
	if err := checkUTF8(b); err != nil {
		return atLine(b, err)
	}
	texts := map[string]*string{"pddl_domain": &f.Domain, "grammar": &f.Grammar, "pddl_problem": &f.Problem}
	return decodeAround(b, texts, func(b []byte) error { return atLine(b, json.Unmarshal(b, f)) })
}

func (f *gameFile) game(id string, annotations []string, known *wordingMemo) (*Game, error) {
	t := Texts{Domain: f.Domain, Grammar: f.Grammar}
	wording, err := known.wording(t)
	if err != nil {
		return nil, err
	}
	sentence, err := t.sentence()
	if err != nil {
		return nil, err
	}
	s, err := ReadProblem(f.Problem)
	if err != nil {
		return nil, err
	}
	s.ID, s.Task, s.Wording, s.Walkthrough, s.Scene = id, strings.Clone(sentence), wording, f.Walkthrough, sceneOf(id)
	s.Annotations = annotations
	return NewGame(s)
}

// sceneOf reads the floor plan from a task folder's name ("…-323"); "" if it has none.
func sceneOf(id string) string {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return ""
	}
	number := parts[1][strings.LastIndexByte(parts[1], '-')+1:]
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return "FloorPlan" + number
}

// wordingMemo remembers texts that were recognised, since thousands of files carry the same. It is safe for concurrent
// use.
type wordingMemo struct {
	mu    sync.Mutex
	known []knownTexts
}

// knownTexts are texts without their sentence.
type knownTexts struct {
	domain, before, after string
	wording               Wording
}

func (m *wordingMemo) wording(t Texts) (Wording, error) {
	before, rest, _ := strings.Cut(t.Grammar, taskRule)
	_, after, _ := strings.Cut(rest, `"`)
	m.mu.Lock()
	i := slices.IndexFunc(m.known, func(k knownTexts) bool {
		return k.domain == t.Domain && k.before == before && k.after == after
	})
	if i >= 0 {
		w := m.known[i].wording
		m.mu.Unlock()
		return w, nil
	}
	m.mu.Unlock()
	w, err := t.Wording()
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	m.known = append(m.known, knownTexts{t.Domain, before, after, w})
	m.mu.Unlock()
	return w, nil
}

// trialData is what the text game reads of a traj_data.json.
type trialData struct {
	TaskType string    `json:"task_type"`
	TaskID   string    `json:"task_id"`
	Params   params    `json:"pddl_params"`
	Scene    sceneData `json:"scene"`
	Turk     turkData  `json:"turk_annotations"`
}

type sceneData struct {
	FloorPlan string `json:"floor_plan"`
	Number    int    `json:"scene_num"`
}

type turkData struct {
	Annotations []annotation `json:"anns"`
}

type annotation struct {
	Task string `json:"task_desc"`
}

const turkKey = `"turk_annotations"`

// decode reads the annotations of a traj_data.json. What stands before them, some 100 kB for the 3-D simulator, is passed
// over if they are the last thing in it, as they are in the released files.
func (d *turkData) decode(b []byte) error {
	before, behind, _ := bytes.Cut(b, []byte(turkKey)) // no text can hold this: it would escape the quotes
	behind, colon := bytes.CutPrefix(bytes.TrimSpace(behind), []byte(":"))
	if last := json.NewDecoder(bytes.NewReader(behind)); colon && bytes.HasPrefix(bytes.TrimSpace(before), []byte("{")) && last.Decode(d) == nil &&
		string(bytes.TrimSpace(behind[last.InputOffset():])) == "}" {
		return nil
	}
	var data struct {
		Turk turkData `json:"turk_annotations"`
	}
	err := json.Unmarshal(b, &data)
	*d = data.Turk
	return err
}

// WriteOfficial writes a game as a folder of the official layout under dir, which the original engine can play:
// json_2.1.1/<id>/ with game.tw-pddl, initial_state.pddl and traj_data.json. It is written in the older wording of game
// and texts. The game is marked as solvable, and gets a shortest plan for a walkthrough if it has none in that wording.
func WriteOfficial(dir string, g *Game, t Texts) error {
	if strings.Count(g.ID, "/") != 2 || !filepath.IsLocal(filepath.FromSlash(g.ID)) {
		return fmt.Errorf("write game %q: its id is not of the form split/task/trial", g.ID)
	}
	folder := filepath.Join(dir, officialFolder, filepath.FromSlash(g.ID))
	files, err := g.officialFiles(t)
	if err != nil {
		return fmt.Errorf("write game %s: %w", g.ID, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("write game %s: %w", g.ID, err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(folder, f.name), f.text, 0o644); err != nil {
			return fmt.Errorf("write game %s: %w", g.ID, err)
		}
	}
	return nil
}

type namedFile struct {
	name string
	text []byte
}

func (g *Game) officialFiles(t Texts) ([]namedFile, error) {
	t, err := t.fit(g.Wording)
	if err != nil {
		return nil, err
	}
	t, err = t.with(g.Task)
	if err != nil {
		return nil, err
	}
	wording, err := t.Wording()
	if err != nil {
		wording = g.Wording // the texts are of no release
	}
	problem, solvable := g.Problem(), true
	game, err := json.Marshal(gameFile{t.Domain, t.Grammar, problem, &solvable, g.solution(wording)})
	if err != nil {
		return nil, err
	}
	data := trialData{TaskType: g.Family().String(), TaskID: g.trial(), Params: g.params(), Scene: sceneData{FloorPlan: g.Scene}}
	if _, err := fmt.Sscanf(g.Scene, "FloorPlan%d", &data.Scene.Number); err != nil {
		data.Scene.Number = 0 // a room of no floor plan
	}
	for _, a := range g.Annotations {
		data.Turk.Annotations = append(data.Turk.Annotations, annotation{a})
	}
	trial, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	return []namedFile{{gameFileName, game}, {"initial_state.pddl", []byte(problem)}, {trialFileName, trial}}, nil
}

// solution is the game's walkthrough if it is in the wording, else a shortest plan.
func (g *Game) solution(w Wording) []string {
	if g.Walkthrough != nil && w == g.Wording {
		return g.Walkthrough
	}
	s := g.NewState(w)
	plan, _ := s.Plan() // without one there is none to write
	var commands []string
	for _, c := range plan {
		commands = append(commands, s.words(c))
	}
	return commands
}
