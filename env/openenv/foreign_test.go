package openenv

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"

	"github.com/coder/websocket"
)

// counter is a server as anybody may write one: a number has to be counted up to five. It lists no tasks, unless it is
// told to, and says nothing of success.
type counter struct {
	action string // schema of actions
	tasks  int    // of its split "test"; 0: it lists none
}

func (c counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metadata":
		fmt.Fprint(w, `{"name":"Counter Environment","description":"Count up to five."}`)
	case "/schema":
		fmt.Fprintf(w, `{"action":%s,"observation":{"properties":{"done":{},"reward":{},"metadata":{},"shown":{"type":"string"},"number":{"type":"integer"}}},"state":{}}`, c.action)
	case "/list_environments":
		fmt.Fprint(w, `["counter"]`)
	case "/counter/splits":
		if c.tasks == 0 {
			http.Error(w, `{"detail":"not supported"}`, http.StatusNotImplemented)
			return
		}
		fmt.Fprint(w, `[{"name":"train","type":"train"}]`)
	case "/counter/num_tasks":
		fmt.Fprintf(w, `{"num_tasks":%d}`, c.tasks)
	case "/ws":
		c.play(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (c counter) play(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	n := 0
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		var m struct {
			Type string
			Data struct {
				Seed  int
				Index *int
				By    *int
				Mode  string
			}
		}
		if json.Unmarshal(data, &m) != nil {
			return
		}
		reward := "null"
		switch {
		case m.Type == "close":
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return
		case m.Type == "reset":
			n = m.Data.Seed % 3
			if m.Data.Index != nil {
				n = *m.Data.Index
			}
		case m.Data.By == nil || *m.Data.By < 0:
			_ = write(conn, `{"type":"error","data":{"message":"by: at least 0","code":"VALIDATION_ERROR"}}`)
			continue
		default:
			if n += *m.Data.By; n >= 5 {
				reward = "0"
				if n == 5 {
					reward = "1"
				}
			}
		}
		_ = write(conn, fmt.Sprintf(`{"type":"observation","data":{"observation":{"shown":"The number is %d.","number":%d},"reward":%s,"done":%v}}`, n, n, reward, n >= 5))
	}
}

const byOne = `{"properties":{"metadata":{},"by":{"type":"integer","description":"How much to add."}},"required":["by"]}`

func startCounter(t *testing.T, c counter, o Options) World {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	o.URL = server.URL
	return dial(t, o)
}

// The contract holds for servers that say no more than the protocol asks for.
func TestContractOfOthers(t *testing.T) {
	w := startCounter(t, counter{action: byOne}, Options{Horizon: 7, Seeds: map[string]int{"train": 5, "test": 4}})
	envtest.Run(t, w, envtest.Config{Splits: []string{"train", "test"}, Tasks: 2})
	if g := w.Guide(); !strings.Contains(g.Role, "Count up to five") || !strings.Contains(g.Rules, "whole number: by (integer): How much to add") {
		t.Errorf("guide %+v", g)
	}
	if _, varies := w.(env.Varier); varies {
		t.Error("a world that makes no variations says it does")
	}
}

// playOut plays actions and returns the results.
func playOut(t *testing.T, w World, task episode.Task, actions ...episode.Action) []episode.StepResult {
	t.Helper()
	e, first, err := w.Open(t.Context(), task, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out := []episode.StepResult{{Observation: first}}
	for _, a := range actions {
		r, err := e.Step(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestOthersAreJudged(t *testing.T) {
	w := startCounter(t, counter{action: byOne}, Options{Horizon: 3, Seeds: map[string]int{"train": 4}})
	task := hall(t, w)
	rs := playOut(t, w, task, "5")
	if r := rs[1]; rs[0].Observation.Text != "The number is 0." || !r.Success || !r.Done || r.Reward != 1 || r.Observation.Text != "The number is 5." {
		t.Errorf("a win: %+v", rs)
	}
	if r := playOut(t, w, task, "6")[1]; r.Success || !r.Done || r.Reward != 0 {
		t.Errorf("a loss: %+v", r)
	}
	rs = playOut(t, w, task, "-1", "five", "1")
	if !strings.Contains(rs[1].Observation.Text, "by: at least 0") || rs[2].Observation.Text != "An action is a whole number." {
		t.Errorf("actions that cannot be: %+v", rs)
	}
	if r := rs[3]; !r.Done || r.Success || r.Observation.Text != "The number is 1." {
		t.Errorf("the horizon: %+v", r)
	}
	tasks, err := w.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	if rs = playOut(t, w, tasks[2]); rs[0].Observation.Text != "The number is 2." {
		t.Errorf("task 2 is not seed 2: %+v", rs)
	}
}

// A server that lists its tasks is asked for them by split and index.
func TestOthersWithTasks(t *testing.T) {
	w := startCounter(t, counter{action: byOne, tasks: 4}, Options{})
	tasks, err := w.Tasks("train")
	if err != nil || len(tasks) != 4 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	if rs := playOut(t, w, tasks[3]); rs[0].Observation.Text != "The number is 3." {
		t.Errorf("task 3 begins with %+v", rs)
	}
}

// Actions with several fields are JSON.
func TestObjectActions(t *testing.T) {
	w := startCounter(t, counter{action: `{"properties":{"by":{"type":"integer"},"mode":{"type":"string"}},"required":["by","mode"]}`}, Options{Seeds: map[string]int{"train": 1}})
	rs := playOut(t, w, hall(t, w), `{"by":2,"mode":"up"}`, "2", "null")
	if rs[1].Observation.Text != "The number is 2." || !strings.Contains(rs[2].Observation.Text, "fields by, mode") || rs[2].Observation.Text != rs[3].Observation.Text {
		t.Errorf("got %+v", rs)
	}
}

func TestFormatIsReadFromSchemas(t *testing.T) {
	text, number := property{Type: "string"}, property{Type: "integer"}
	for name, c := range map[string]struct {
		action, observation looks
		field, shows        string
	}{
		"one text":           {looks{Properties: map[string]property{"message": text, "metadata": {}}}, looks{Properties: map[string]property{"echo": text, "length": number}}, "message", "echo"},
		"one that has to be": {looks{Properties: map[string]property{"code": text, "speed": number}, Required: []string{"code"}}, looks{Properties: map[string]property{"out": text, "err": text}}, "code", ""},
		"two":                {looks{Properties: map[string]property{"a": text, "b": text}, Required: []string{"a", "b"}}, looks{Properties: map[string]property{"text": text, "goal": text}}, "", "text"},
		"neither":            {looks{Properties: map[string]property{"moves": {Type: "array"}}}, looks{}, "", ""},
	} {
		if f := newFormat(c.action, c.observation); f.field != c.field || f.shows != c.shows {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}
