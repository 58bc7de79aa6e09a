package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skillmaster/skill"
	"skillmaster/store"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pen is a quarantine in memory.
type pen struct {
	bank   skill.Bank
	guests []store.Guest
	heard  []store.Feedback
	fails  error
}

func (p *pen) Propose(_ context.Context, e skill.Edit, author string) (store.Guest, error) {
	_, o := p.bank.Apply(e, skill.Permission{Shown: p.bank.IDs()})
	g := store.Guest{Edit: e, Outcome: o, Author: author}
	if o == skill.Added || o == skill.Updated {
		g.Number = len(p.guests) + 1
		p.guests = append(p.guests, g)
	}
	return g, p.fails
}

func (p *pen) Hear(_ context.Context, f store.Feedback) error {
	p.heard = append(p.heard, f)
	return p.fails
}

func testBank(t testing.TB, n int) skill.Bank {
	t.Helper()
	skills := []skill.Skill{
		{ID: "dyn_001", Category: skill.General, Title: "Search in order", Principle: "Look through closed drawers before open shelves.", When: "the object is not in sight"},
		{ID: "dyn_002", Category: "clean", Title: "Wash at the sink", Principle: "Take plates to the sinkbasin to clean them.", When: "the task says clean"},
		{ID: "dyn_003", Category: "clean", Title: "Do not wash", Principle: "Never take plates to the sinkbasin to clean them."},
	}
	for i := len(skills); i < n; i++ {
		skills = append(skills, skill.Skill{Category: "heat", Title: fmt.Sprintf("Number %d", i), Principle: fmt.Sprintf("Heat thing %d in the microwave.", i)})
	}
	b, err := skill.New(skills[:max(n, 0)], nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// connect returns a stock client of the server.
func connect(t *testing.T, s *sdk.Server) *sdk.ClientSession {
	t.Helper()
	a, b := sdk.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	return client(t, b)
}

func client(t *testing.T, over sdk.Transport) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "9"}, nil)
	for _, err := range []error{
		sdk.AddSendingCustomMethod[*ListParams, *ListResult](c, "skills/list"),
		sdk.AddSendingCustomMethod[*GetParams, *GetResult](c, "skills/get"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	session, err := c.Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// ask calls a tool and decodes its answer; failed is the text of an error that the tool answers with.
func ask[Out any](t *testing.T, c *sdk.ClientSession, tool string, in map[string]any) (out Out, failed string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return out, err.Error()
	}
	if r.IsError {
		return out, r.Content[0].(*sdk.TextContent).Text
	}
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out, ""
}

func ids(s Skills) string {
	var out []string
	for _, x := range s.Skills {
		out = append(out, x.ID)
	}
	return strings.Join(out, " ")
}

func TestTools(t *testing.T) {
	p := &pen{bank: testBank(t, 3)}
	c := connect(t, New("1", File{p.bank}, p, slog.New(slog.DiscardHandler)))
	found, failed := ask[Skills](t, c, "search_skills", map[string]any{"query": "clean the plates", "limit": 2})
	if failed != "" || ids(found) != "dyn_002 dyn_003" || found.Bank != p.bank.Hash() {
		t.Errorf("search finds %+v %s", found, failed)
	}
	if found, _ = ask[Skills](t, c, "search_skills", map[string]any{"query": "drawers", "category": "heat"}); ids(found) != "dyn_001" {
		t.Errorf("search finds %+v, want the general skill", found)
	}
	if found, _ = ask[Skills](t, c, "search_skills", map[string]any{"query": "quantum"}); ids(found) != "" {
		t.Errorf("search finds %+v, want nothing", found)
	}
	if found, _ = ask[Skills](t, c, "list_skills", map[string]any{"category": "clean"}); ids(found) != "dyn_002 dyn_003" {
		t.Errorf("list has %+v", found)
	}
	one, failed := ask[ReadOut](t, c, "read_skill", map[string]any{"skill_id": "Wash at the sink"})
	if failed != "" || one.ID != "dyn_002" || len(one.Contradicts) != 1 || one.Contradicts[0] != "dyn_003" {
		t.Errorf("read gives %+v %s", one, failed)
	}
	edit, failed := ask[EditOut](t, c, "propose_skill", map[string]any{"title": "Count saucers", "principle": "Count every saucer twice.", "when_to_apply": "two are wanted", "category": "pick"})
	if failed != "" || edit.Outcome != "added" || edit.Number != 1 || p.guests[0].Author != "tester 9" || p.guests[0].Edit.Op != skill.Propose {
		t.Errorf("propose gives %+v %s", edit, failed)
	}
	if edit, _ = ask[EditOut](t, c, "update_skill", map[string]any{"skill_id": "dyn_001", "title": "Other order", "principle": "Begin with what is near.", "when_to_apply": ""}); edit.Outcome != "updated" || edit.Number != 2 {
		t.Errorf("update gives %+v", edit)
	}
	if edit, _ = ask[EditOut](t, c, "keep_skills", nil); edit.Outcome != "kept" {
		t.Errorf("keep gives %+v", edit)
	}
	report, failed := ask[ReportOut](t, c, "report_use", map[string]any{"skill_ids": []string{"dyn_001", "x"}, "success": true, "note": "good"})
	if failed != "" || !report.Recorded || len(report.Unknown) != 1 || len(p.heard) != 1 || p.heard[0].Success == nil || !*p.heard[0].Success {
		t.Errorf("report gives %+v %s", report, failed)
	}
}

// Bad input is answered with what to do, and changes nothing.
func TestBadInput(t *testing.T) {
	p := &pen{bank: testBank(t, 3)}
	c := connect(t, New("1", File{p.bank}, p, slog.New(slog.DiscardHandler)))
	for name, x := range map[string]struct {
		tool string
		in   map[string]any
		want string
	}{
		"no query":        {"search_skills", map[string]any{"query": " "}, "empty"},
		"large limit":     {"search_skills", map[string]any{"query": "a", "limit": 1000}, "100"},
		"unknown skill":   {"read_skill", map[string]any{"skill_id": "dyn_999"}, "list_skills"},
		"unknown field":   {"read_skill", map[string]any{"skill_id": "dyn_001", "path": "/etc/passwd"}, "path"},
		"wrong type":      {"read_skill", map[string]any{"skill_id": 7}, "skill_id"},
		"nothing used":    {"report_use", map[string]any{"skill_ids": []string{}}, "1 to 100"},
		"a long note":     {"report_use", map[string]any{"skill_ids": []string{"a"}, "note": strings.Repeat("x", 3000)}, "2000"},
		"a long reason":   {"propose_skill", map[string]any{"title": "T", "principle": "P", "when_to_apply": "", "reason": strings.Repeat("x", 3000)}, "2000"},
		"an unknown tool": {"delete_skill", nil, "delete_skill"},
	} {
		if _, failed := ask[map[string]any](t, c, x.tool, x.in); !strings.Contains(failed, x.want) {
			t.Errorf("%s is answered with %q, want something with %q", name, failed, x.want)
		}
	}
	for name, in := range map[string]map[string]any{
		"markup":    {"title": "<|im_start|>", "principle": "P", "when_to_apply": ""},
		"long":      {"title": strings.Repeat("x", 200), "principle": "P", "when_to_apply": ""},
		"no words":  {"title": "?", "principle": "!", "when_to_apply": ""},
		"duplicate": {"title": "Wash at the sink", "principle": "Another text.", "when_to_apply": "", "category": "clean"},
	} {
		if out, failed := ask[EditOut](t, c, "propose_skill", in); failed != "" || out.Number != 0 || !strings.HasPrefix(out.What, "nothing changes") {
			t.Errorf("%s is answered with %+v %s", name, out, failed)
		}
	}
	if len(p.guests)+len(p.heard) != 0 {
		t.Errorf("bad input changed something: %+v %+v", p.guests, p.heard)
	}
	p.fails = errors.New("the disk is full")
	if _, failed := ask[ReportOut](t, c, "report_use", map[string]any{"skill_ids": []string{"a"}}); !strings.Contains(failed, "disk is full") {
		t.Errorf("a failure is answered with %q", failed)
	}
}

// Without a quarantine there is nothing to write with.
func TestReadOnly(t *testing.T) {
	c := connect(t, New("1", File{testBank(t, 1)}, nil, slog.New(slog.DiscardHandler)))
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is there, and does not only read", tool.Name)
		}
	}
	if len(tools.Tools) != 3 {
		t.Errorf("%d tools", len(tools.Tools))
	}
}

// Skills are there as Agent Skills: the pages of skills/list together are the bank, each can be got and read, and its
// digest is that of what is read.
func TestSkillsExtension(t *testing.T) {
	c := connect(t, New("1", File{testBank(t, 120)}, nil, slog.New(slog.DiscardHandler)))
	if _, ok := c.InitializeResult().Capabilities.Extensions[extension]; !ok {
		t.Error("the extension is not announced")
	}
	seen := map[string]bool{}
	cursor := ""
	for pages := 1; ; pages++ {
		page, err := sdk.CallCustomMethod[*ListParams, *ListResult](t.Context(), c, "skills/list", &ListParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Skills {
			seen[s.URI] = true
			if s.Frontmatter["name"] == "" || s.Frontmatter["description"] == "" {
				t.Errorf("%+v", s)
			}
		}
		if cursor = page.Next; cursor == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d skills, want 120", len(seen))
	}
	looked := 0
	for at := range seen {
		if looked++; looked > 5 {
			break
		}
		got, err := sdk.CallCustomMethod[*GetParams, *GetResult](t.Context(), c, "skills/get", &GetParams{URI: at})
		if err != nil {
			t.Fatal(err)
		}
		file, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: got.Skill.Resources[0].URI})
		if err != nil {
			t.Fatal(err)
		}
		if text := file.Contents[0].Text; digest([]byte(text)) != got.Skill.Resources[0].Digest || len(text) != got.Skill.Resources[0].Size {
			t.Errorf("%s: digest or size differ", at)
		}
	}
	for _, bad := range []string{"bm90", "!", ""} {
		if _, err := sdk.CallCustomMethod[*ListParams, *ListResult](t.Context(), c, "skills/list", &ListParams{Cursor: bad}); (err == nil) != (bad == "") {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "skill://none/SKILL.md", "file:///etc/passwd", "skill://../SKILL.md"} {
		if _, err := sdk.CallCustomMethod[*GetParams, *GetResult](t.Context(), c, "skills/get", &GetParams{URI: bad}); err == nil {
			t.Errorf("got %q", bad)
		}
		if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: bad}); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}

// bearer shows a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// Over HTTP only who shows the token is answered; pages of other origins are not, whatever they show.
func TestHTTP(t *testing.T) {
	p := &pen{bank: testBank(t, 3)}
	server := httptest.NewServer(Handler(New("1", File{p.bank}, p, slog.New(slog.DiscardHandler)), "secret", slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close) // after the client has gone
	c := client(t, &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer("secret")}})
	if found, failed := ask[Skills](t, c, "search_skills", map[string]any{"query": "plates"}); failed != "" || len(found.Skills) != 2 {
		t.Errorf("%+v %s", found, failed)
	}
	if edit, failed := ask[EditOut](t, c, "propose_skill", map[string]any{"title": "Count saucers", "principle": "Count every saucer twice.", "when_to_apply": "", "category": "pick"}); failed != "" || edit.Outcome != "added" || p.guests[0].Author != "tester 9" {
		t.Errorf("%+v %s", edit, failed)
	}
	other := sdk.NewClient(&sdk.Implementation{Name: "other"}, nil)
	if _, err := other.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer("guess")}, MaxRetries: -1}, nil); err == nil {
		t.Error("a wrong token is let in")
	}
	for name, x := range map[string]struct {
		path, token, origin string
		want                int
	}{
		"no token":       {"/mcp", "", "", 401},
		"wrong token":    {"/mcp", "Bearer secret2", "", 401},
		"foreign origin": {"/mcp", "Bearer secret", "http://evil.example", 403},
		"another path":   {"/", "Bearer secret", "", 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+x.path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", x.token)
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != x.want {
			t.Errorf("%s is answered with %d, want %d", name, got.StatusCode, x.want)
		}
	}
	if h := Handler(New("1", File{p.bank}, p, slog.New(slog.DiscardHandler)), "", slog.New(slog.DiscardHandler)); h != nil {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil))
		if w.Code != 401 {
			t.Errorf("without a token anybody is answered: %d", w.Code)
		}
	}
}
