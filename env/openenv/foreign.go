package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"skillmaster/episode"
)

// format is how text becomes an action of a server that is not ours, and what it shows becomes text. It is read from the
// server's schemas.
//
// A world whose actions have one field, text or a whole number, is played with that; all others with JSON objects. Of an
// observation with one field of text that field is shown, else all of it as JSON.
type format struct {
	field  string // of actions; "": they are JSON objects
	whole  bool   // the field is a whole number
	names  []string
	shows  string // field of observations; "": all of it
	tells  bool   // observations say "won"
	actual string // what actions are like, in words
}

// property is what a schema says of a field.
type property struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Default     any    `json:"default"`
}

// looks is a JSON schema of an object.
type looks struct {
	Title       string              `json:"title"`
	Description string              `json:"description"`
	Properties  map[string]property `json:"properties"`
	Required    []string            `json:"required"`
}

// standing are fields that every action or observation has.
var standing = []string{"metadata", "done", "reward"}

func (l looks) fields() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l.Properties)), func(f string) bool { return slices.Contains(standing, f) })
}

func newFormat(action, observation looks) format {
	f := format{names: action.fields()}
	one := f.names
	if len(one) != 1 { // one of several may be the only one that has to be there
		one = slices.DeleteFunc(slices.Clone(action.Required), func(n string) bool { return slices.Contains(standing, n) })
	}
	if len(one) == 1 {
		switch p := action.Properties[one[0]]; p.Type {
		case "string":
			f.field, f.actual = one[0], "An action is a text: "+describe(one[0], p)
		case "integer":
			f.field, f.whole, f.actual = one[0], true, "An action is a whole number: "+describe(one[0], p)
		}
	}
	if f.field == "" {
		var lines []string
		for _, n := range f.names {
			lines = append(lines, describe(n, action.Properties[n]))
		}
		f.actual = "An action is a JSON object on one line, with the fields\n" + strings.Join(lines, "\n")
	}
	var text []string
	for _, n := range observation.fields() {
		if observation.Properties[n].Type == "string" {
			text = append(text, n)
		}
	}
	if len(text) == 1 {
		f.shows = text[0]
	}
	if slices.Contains(text, "text") {
		f.shows = "text"
	}
	f.tells = observation.Properties["won"].Type == "boolean"
	return f
}

func describe(name string, p property) string {
	return printable(strings.TrimSuffix(fmt.Sprintf("%s (%s): %s", name, p.Type, p.Description), ": "))
}

// action is a text as the server's action, or why it cannot be one.
func (f format) action(text string) (action any, problem string) {
	switch {
	case f.whole:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, "An action is a whole number."
		}
		return fields{f.field: n}, ""
	case f.field != "":
		return fields{f.field: strings.ToValidUTF8(text, "\uFFFD")}, ""
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, "An action is a JSON object with the fields " + strings.Join(f.names, ", ") + "."
	}
	return object, ""
}

// read is what a server shows, as a result without what only the episode knows.
func (f format) read(d shown) (episode.StepResult, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(d.Observation, &o); err != nil {
		return episode.StepResult{}, fmt.Errorf("the observation cannot be read: %w", err)
	}
	r := episode.StepResult{Done: *d.Done}
	if d.Reward != nil {
		r.Reward = *d.Reward
	}
	if f.tells && json.Unmarshal(o["won"], &r.Success) != nil {
		return r, errors.New("the observation does not say whether it is won, as its schema promises")
	}
	r.Observation.Admissible = listed(o["admissible_commands"])
	if f.shows != "" {
		if json.Unmarshal(o[f.shows], &r.Observation.Text) != nil {
			return r, fmt.Errorf("the observation has no text %q, as its schema promises", f.shows)
		}
		return r, nil
	}
	delete(o, "metadata")
	text, err := json.Marshal(o)
	r.Observation.Text = string(text)
	return r, err
}

// listed are admissible actions, where a world lists them.
func listed(raw json.RawMessage) []episode.Action {
	var list []episode.Action
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil || list == nil {
		return nil
	}
	slices.Sort(list)
	return list
}

// discover finds out what the world of a server is that is not ours.
func (s *suite) discover(ctx context.Context) error {
	var about struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if err := s.ask(ctx, http.MethodGet, "/metadata", nil, &about); err != nil {
		return fmt.Errorf("is it an OpenEnv server? %w", err)
	}
	var schema struct{ Action, Observation looks }
	if err := s.ask(ctx, http.MethodGet, "/schema", nil, &schema); err != nil {
		return err
	}
	s.format = newFormat(schema.Action, schema.Observation)
	name := strings.Join(strings.Fields(printable(about.Name)), "-")
	if name == "" {
		name = "openenv"
	}
	s.guide = guide{
		Name: name, Role: printable("You act in the world " + about.Name + ". " + about.Description), Rules: s.format.actual,
		Horizon: s.o.Horizon, SuccessReward: s.o.Success, Categories: map[string][]string{name: {name}},
	}
	if err := s.listed(ctx); err == nil || !answered(err, http.StatusNotFound, http.StatusNotImplemented) {
		return err
	}
	return s.seeds()
}

// listed reads the tasks of a server that lists them: reset takes a split and an index.
func (s *suite) listed(ctx context.Context) error {
	var names []string
	if err := s.ask(ctx, http.MethodGet, "/list_environments", nil, &names); err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("/list_environments names none")
	}
	at := "/" + url.PathEscape(names[0])
	var splits []struct {
		Name string `json:"name"`
	}
	if err := s.ask(ctx, http.MethodGet, at+"/splits", nil, &splits); err != nil {
		return err
	}
	for _, split := range splits {
		var count struct {
			Tasks *int `json:"num_tasks"`
		}
		if err := s.ask(ctx, http.MethodPost, at+"/num_tasks", span{Split: split.Name}, &count); err != nil {
			return err
		}
		if count.Tasks == nil || *count.Tasks < 0 || *count.Tasks > mostTasks {
			return fmt.Errorf("split %.40q has no number of tasks, or one above %d", split.Name, mostTasks)
		}
		s.add(split.Name, *count.Tasks, func(i int) reset { return reset{Split: split.Name, Index: &i} })
	}
	return nil
}

// mostTasks of a split are taken from a server that is not ours.
const mostTasks = 1_000_000

// seeds makes tasks of seeds, another one for each.
func (s *suite) seeds() error {
	next := uint64(0)
	for _, split := range slices.Sorted(maps.Keys(s.o.Seeds)) {
		n := s.o.Seeds[split]
		if n < 1 || n > mostTasks {
			return fmt.Errorf("split %s has %d seeds, at least 1 and at most %d can be", split, n, mostTasks)
		}
		first := next
		s.add(split, n, func(i int) reset { return reset{Seed: first + uint64(i), fixed: true} })
		next += uint64(n)
	}
	return nil
}

func (s *suite) add(split string, n int, start func(i int) reset) {
	s.guide.Splits = append(s.guide.Splits, split)
	s.tasks[split] = make([]episode.Task, n)
	for i := range n {
		// The part before the last slash is a task's own: whoever deals tasks by it deals them one by one.
		id := fmt.Sprintf("%s/%06d/%s", split, i, s.guide.Name)
		s.tasks[split][i] = episode.Task{ID: id, Split: split, Family: s.guide.Name, Category: s.guide.Name, Goal: "Do what the world asks for."}
		s.resets[id] = start(i)
	}
}
