package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// inference is a server that says what a function tells it to, in the words of the OpenAI protocol.
func inference(t *testing.T, say func(system, last string) string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v1/chat/completions" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		system := ""
		if q.Messages[0].Role == "system" {
			system = q.Messages[0].Content
		}
		text, err := json.Marshal(say(system, q.Messages[len(q.Messages)-1].Content))
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"model":%q,"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`, q.Model, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const smallWorld = `world.sizes={"warm":8,"train":8,"probe":12,"gate":12,"valid":4,"report":4}`

func propose(n int64) string {
	return skill.FormatCall(skill.Edit{
		Op: skill.Propose, Category: skill.General, Title: fmt.Sprintf("Advice of kind %d", n),
		Principle: fmt.Sprintf("In case number %d think of something that begins with %c.", n, 'a'+rune(n%26)), When: "always", Reason: "seen",
	})
}

// With a model on a server the loop runs without a learner: it acts, reviews, judges and commits, and the bank is what
// changes; a stopped run goes on, and eval asks the same server.
func TestServedPolicy(t *testing.T) {
	var reviews atomic.Int64
	url := inference(t, func(_, last string) string {
		if strings.Contains(last, "Review.") {
			return propose(reviews.Add(1))
		}
		return "<think>Somewhere.</think><action>look</action>"
	})
	dir := filepath.Join(t.TempDir(), "run")
	out, errs := must(t, 0, "train", "--run", dir, "--preset", "server", "--set", "server.url="+url, "--set", "server.model=m", "--set", smallWorld,
		"--iterations", "2", "--set", "train.tasks=2", "--set", "train.group=2", "--set", "train.probe.tasks=1")
	if reviews.Load() == 0 || !strings.Contains(out, "skills committed") {
		t.Errorf("%d reviews:\n%s%s", reviews.Load(), out, errs)
	}
	if err := withRun(t.Context(), dir, func(run *store.Run) error {
		saved, _, err := run.Latest(t.Context())
		if err != nil {
			return err
		}
		if saved.Checkpoint.Phase != train.Finished || saved.Checkpoint.PolicyVersion != 0 || saved.Checkpoint.Tokens != 0 {
			t.Errorf("the checkpoint is %+v, want a finished run without an update", saved.Checkpoint)
		}
		points, err := run.Metrics(t.Context(), "probe/measured")
		if err == nil && (len(points) != 2 || points[0].Value == 0) {
			t.Errorf("measured edits: %+v", points)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	must(t, 0, "train", "--run", dir, "--resume")
	if out, _ = must(t, 0, "eval", "--run", dir); !strings.Contains(out, "all") {
		t.Errorf("eval says\n%s", out)
	}
	must(t, 2, "train", "--run", dir+"2", "--set", "server.url="+url)
	must(t, 2, "train", "--run", dir+"2", "--set", "server.url="+url, "--set", "server.model=m")
	must(t, 2, "train", "--run", dir+"2", "--preset", "server", "--set", "server.url="+url, "--set", "server.model=m", "--set", "server.dialect=klingon")
	must(t, 1, "train", "--run", dir+"2", "--preset", "server", "--set", "server.url=http://127.0.0.1:1", "--set", "server.model=m", "--set", smallWorld)
}

// A run ends where its budget does, with the key of a file that is shown nowhere.
func TestServerBudget(t *testing.T) {
	asked, keyed := atomic.Int64{}, atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") == "Bearer "+canary {
			keyed.Add(1)
		}
		fmt.Fprint(w, `{"model":"m","choices":[{"finish_reason":"stop","message":{"content":"<action>look</action>"}}],"usage":{"prompt_tokens":900,"completion_tokens":100}}`)
	}))
	t.Cleanup(s.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"train", "--run", dir, "--preset", "server", "--set", "server.url=" + s.URL, "--set", "server.model=m", "--set", smallWorld, "--set", "server.key_file=" + key}
	out, errs := must(t, 1, append(args, "--set", "server.budget.money=0.5", "--set", "server.budget.prompt_price=10", "--set", "server.budget.reply_price=10")...)
	// A request costs 0.01, and what it may cost at most is set aside before it is sent.
	if n := asked.Load(); n < 2 || n > 50 || keyed.Load() != n || !strings.Contains(errs, "the budget is spent") {
		t.Errorf("%d requests, %d of them with the key:\n%s", n, keyed.Load(), errs)
	}
	noCanary(t, dir, out, errs)
	for what, set := range map[string]string{
		"names no price": "server.budget.money=1", "at least 0": "server.budget.tokens=-1", "give one of them": "server.key=K",
	} {
		if _, errs := must(t, 2, append(args, "--set", set)...); !strings.Contains(errs, what) {
			t.Errorf("%s: %s", set, errs)
		}
	}
	if _, errs := must(t, 2, "train", "--run", dir+"2", "--set", "teacher.budget.tokens=9"); !strings.Contains(errs, "teacher.url") {
		t.Errorf("a budget without a server: %s", errs)
	}
}

// A teacher is shown failures and proposes skills, which become part of the bank at once, each under an id of its own;
// what it proposed twice does not.
func TestTeacher(t *testing.T) {
	var lessons atomic.Int64
	url := inference(t, func(system, last string) string {
		if !strings.Contains(system, "You teach an agent.") {
			return "hello" // the check at the start
		}
		if !strings.Contains(last, "Failed episode 1") || !strings.Contains(last, "Task: ") {
			t.Errorf("the teacher is shown %q", last)
		}
		return propose(lessons.Add(1) / 2 * 2) // every second one is new
	})
	dir := filepath.Join(t.TempDir(), "run")
	must(t, 0, "train", "--run", dir, "--preset", "smoke", "--ablation", "teacher", "--set", "teacher.url="+url, "--set", "teacher.model=t", "--set", smallWorld,
		"--set", "train.warm.updates=5", "--set", "train.warm.round=5", "--set", "train.teacher.every=1", "--set", "train.tasks=2", "--iterations", "3")
	run, err := store.View(t.Context(), dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	commits, err := run.Commits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range commits {
		if c.Reason != "teacher" || c.Outcome != skill.Added || c.Provenance.Family == "" {
			t.Errorf("commit %+v", c.Commit)
		}
		for _, id := range c.Bank.IDs() {
			ids[id] = true
		}
	}
	if len(commits) < 2 || len(ids) != len(commits) {
		t.Errorf("%d commits, %d ids", len(commits), len(ids))
	}
	points, err := run.Metrics(t.Context(), "teacher/added")
	if err != nil {
		t.Fatal(err)
	}
	added := 0.0
	for _, p := range points {
		added += p.Value
	}
	if added != float64(len(commits)) {
		t.Errorf("%v were counted, %d committed", added, len(commits))
	}
	must(t, 2, "train", "--run", dir+"2", "--ablation", "teacher")
	must(t, 2, "train", "--run", dir+"2", "--set", "teacher.url="+url, "--set", "teacher.model=t")
}

// The weights of a frozen run stay those of its warm start.
func TestFrozen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, 0, "train", "--run", dir, "--preset", "smoke", "--ablation", "frozen", "--set", smallWorld, "--set", "train.warm.updates=5", "--set", "train.warm.round=5", "--iterations", "2")
	if err := withRun(t.Context(), dir, func(run *store.Run) error {
		saved, _, err := run.Latest(t.Context())
		if err != nil {
			return err
		}
		warm, err := run.Warm(t.Context())
		if err == nil && (saved.Checkpoint.PolicyVersion != 5 || warm.Checkpoint.PolicyVersion != 5 || saved.Checkpoint.Phase != train.Finished) {
			t.Errorf("warm %d, end %d", warm.Checkpoint.PolicyVersion, saved.Checkpoint.PolicyVersion)
		}
		points, err := run.Metrics(t.Context(), "action/return_mean")
		if len(points) != 2 {
			t.Errorf("returns of %d iterations, want 2", len(points))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Skills are retrieved by the vectors of a server, in training and in evaluation; a run says what it lacks for that.
func TestRetrievalByEmbeddingServer(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v1/embeddings" || q.Model != "e" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		asked.Add(int64(len(q.Input)))
		var data []string
		for i, text := range q.Input {
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[1,%d,%d]}`, i, strings.Count(text, "a"), len(text)%7))
		}
		fmt.Fprintf(w, `{"model":"e","data":[%s],"usage":{"prompt_tokens":1,"total_tokens":1}}`, strings.Join(data, ","))
	}))
	t.Cleanup(s.Close)
	bank := filepath.Join(t.TempDir(), "bank.json")
	if err := os.WriteFile(bank, []byte(`{"general_skills":[{"skill_id":"g1","title":"Look","principle":"Look around before all else."},{"skill_id":"g2","title":"Count","principle":"Count what was put away."}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	url := inference(t, func(system, last string) string {
		if strings.Contains(last, "Review.") {
			return skill.FormatCall(skill.Edit{Op: skill.Keep, Reason: "covered"})
		}
		if strings.Contains(last, "Your task") && !strings.Contains(system, "[g1]") && !strings.Contains(system, "[g2]") {
			t.Errorf("no skill in %q", system)
		}
		return "<think>Somewhere.</think><action>look</action>"
	})
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{
		"train", "--run", dir, "--preset", "server", "--set", "server.url=" + url, "--set", "server.model=m", "--set", smallWorld, "--bank", bank,
		"--iterations", "1", "--set", "train.tasks=2", "--set", "train.group=2", "--set", "train.rollout.max_skills=1", "--set", "train.rollout.retrieve_by=embedding", "--set", "train.retire.dropout=0",
	}
	if _, errs := must(t, 2, args...); !strings.Contains(errs, "embeddings.url") {
		t.Errorf("without a server of vectors: %q", errs)
	}
	must(t, 0, append(args, "--set", "embeddings.url="+s.URL, "--set", "embeddings.model=e")...)
	if asked.Load() == 0 {
		t.Error("nobody asked for vectors")
	}
	before := asked.Load()
	out, _ := must(t, 0, "eval", "--run", dir, "--panel", "report")
	if asked.Load() == before || !strings.Contains(out, "skills shown") {
		t.Errorf("eval asked for %d vectors and printed\n%s", asked.Load()-before, out)
	}
}
