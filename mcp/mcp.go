// Package mcp serves a bank to other agents over the Model Context Protocol: they search and read skills, propose edits
// into a quarantine that nothing of the run sees before they are judged, and report what came of skills they used.
package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"skillmaster/skill"
	"skillmaster/store"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Source is where skills come from.
type Source interface {
	Head(ctx context.Context) (string, error)
	Bank(ctx context.Context, hash string) (skill.Bank, error)
}

// Quarantine takes what others write.
type Quarantine interface {
	Propose(ctx context.Context, e skill.Edit, author string) (store.Guest, error)
	Hear(ctx context.Context, f store.Feedback) error
}

// File is a Source of one bank that does not change.
type File struct{ Content skill.Bank }

// Head is the bank's hash.
func (f File) Head(context.Context) (string, error) { return f.Content.Hash(), nil }

// Bank is the bank, whatever is asked for: there is one.
func (f File) Bank(context.Context, string) (skill.Bank, error) { return f.Content, nil }

// extension is the name of Skills over MCP (SEP-2640).
const extension = "io.modelcontextprotocol/skills"

const instructions = `Skills that an agent wrote about its own work, each kept because it was measured to help. Search before you begin a task;
follow what fits. Afterwards report what you used and whether it worked. If you learnt something general that no skill
says, propose it; if a skill was wrong, update it; otherwise keep them. What you propose is measured before anybody sees it.`

// bank answers for one source.
type bank struct {
	source     Source
	quarantine Quarantine
}

// New returns a server of a source's current bank. Without a quarantine (nil) it only reads.
func New(version string, source Source, q Quarantine, log *slog.Logger) *sdk.Server {
	b := &bank{source, q}
	capabilities := &sdk.ServerCapabilities{}
	capabilities.AddExtension(extension, map[string]any{})
	s := sdk.NewServer(&sdk.Implementation{Name: "skillmaster", Title: "SkillMaster's skills", Version: version}, &sdk.ServerOptions{
		Instructions: instructions, Capabilities: capabilities, Logger: log,
	})
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
	sdk.AddTool(s, &sdk.Tool{Name: "search_skills", Description: "Find the skills that say most about a task, the best first.", Annotations: reads}, b.search)
	sdk.AddTool(s, &sdk.Tool{Name: "list_skills", Description: "List all skills with their conditions.", Annotations: reads}, b.list)
	sdk.AddTool(s, &sdk.Tool{Name: "read_skill", Description: "Read one skill whole, and which others contradict it.", Annotations: reads}, b.read)
	if q != nil {
		writes := &sdk.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: new(bool)}
		sdk.AddTool(s, &sdk.Tool{Name: "propose_skill", Description: "Propose a new skill. It waits in quarantine until it was measured.", Annotations: writes}, b.propose)
		sdk.AddTool(s, &sdk.Tool{Name: "update_skill", Description: "Propose other words for a skill. They wait in quarantine until they were measured.", Annotations: writes}, b.update)
		sdk.AddTool(s, &sdk.Tool{Name: "keep_skills", Description: "Say that no skill needs a change.", Annotations: writes}, b.keep)
		sdk.AddTool(s, &sdk.Tool{Name: "report_use", Description: "Report which skills were used in a task, and whether it succeeded.", Annotations: writes}, b.report)
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "skill", Title: "A skill as an Agent Skill", URITemplate: "skill://{name}/SKILL.md", MIMEType: "text/markdown"}, b.resource)
	must(sdk.AddReceivingCustomMethod(s, "skills/list", b.skillsList))
	must(sdk.AddReceivingCustomMethod(s, "skills/get", b.skillsGet))
	return s
}

func must(err error) {
	if err != nil {
		panic(err) // a name above is wrong
	}
}

// current is the bank as it is now.
func (b *bank) current(ctx context.Context) (skill.Bank, error) {
	head, err := b.source.Head(ctx)
	if err != nil {
		return skill.Bank{}, err
	}
	return b.source.Bank(ctx, head)
}

// Skill is a skill as tools answer it.
type Skill struct {
	ID        string `json:"skill_id"`
	Category  string `json:"category"`
	Title     string `json:"title"`
	Principle string `json:"principle"`
	When      string `json:"when_to_apply,omitempty"`
}

func of(s skill.Skill) Skill { return Skill(s) }

// Skills are several, of one bank.
type Skills struct {
	Bank   string  `json:"bank" jsonschema:"hash of the bank they are from"`
	Skills []Skill `json:"skills"`
}

// SearchIn is what search_skills takes.
type SearchIn struct {
	Query    string `json:"query" jsonschema:"the task, in words"`
	Category string `json:"category,omitempty" jsonschema:"only skills of this category, and general ones"`
	Limit    int    `json:"limit,omitempty" jsonschema:"most skills to return; 5 if left out"`
}

func (b *bank) search(ctx context.Context, _ *sdk.CallToolRequest, in SearchIn) (*sdk.CallToolResult, Skills, error) {
	bank, err := b.current(ctx)
	if err != nil {
		return nil, Skills{}, err
	}
	switch {
	case strings.TrimSpace(in.Query) == "":
		return nil, Skills{}, errors.New("query is empty: say what the task is")
	case in.Limit < 0 || in.Limit > 100:
		return nil, Skills{}, errors.New("limit is from 1 to 100")
	case in.Limit == 0:
		in.Limit = 5
	}
	out := Skills{Bank: bank.Hash(), Skills: []Skill{}}
	for _, s := range skill.Search(bank, in.Category, in.Query, in.Limit) {
		out.Skills = append(out.Skills, of(s))
	}
	return nil, out, nil
}

// ListIn is what list_skills takes.
type ListIn struct {
	Category string `json:"category,omitempty" jsonschema:"only skills of this category"`
}

func (b *bank) list(ctx context.Context, _ *sdk.CallToolRequest, in ListIn) (*sdk.CallToolResult, Skills, error) {
	bank, err := b.current(ctx)
	if err != nil {
		return nil, Skills{}, err
	}
	out := Skills{Bank: bank.Hash(), Skills: []Skill{}}
	for _, s := range bank.Skills() {
		if in.Category == "" || in.Category == s.Category {
			out.Skills = append(out.Skills, of(s))
		}
	}
	return nil, out, nil
}

// ReadIn is what read_skill takes.
type ReadIn struct {
	ID string `json:"skill_id" jsonschema:"id of the skill, or its exact title"`
}

// ReadOut is a skill whole.
type ReadOut struct {
	Skill
	Bank        string   `json:"bank"`
	Pinned      bool     `json:"pinned"`
	Contradicts []string `json:"contradicts" jsonschema:"ids of skills that say the opposite"`
}

func (b *bank) read(ctx context.Context, _ *sdk.CallToolRequest, in ReadIn) (*sdk.CallToolResult, ReadOut, error) {
	bank, err := b.current(ctx)
	if err != nil {
		return nil, ReadOut{}, err
	}
	for _, s := range bank.Skills() {
		if s.ID == in.ID || s.Title == in.ID {
			conflicts := skill.Conflicts(bank, s)
			if conflicts == nil {
				conflicts = []string{}
			}
			return nil, ReadOut{of(s), bank.Hash(), bank.Pinned(s.ID), conflicts}, nil
		}
	}
	return nil, ReadOut{}, fmt.Errorf("there is no skill %q: list_skills names those there are", in.ID)
}

// ProposeIn is what propose_skill takes.
type ProposeIn struct {
	Title     string `json:"title" jsonschema:"a few words"`
	Principle string `json:"principle" jsonschema:"what to do, in one or two sentences"`
	When      string `json:"when_to_apply" jsonschema:"how to tell that it applies"`
	Category  string `json:"category,omitempty" jsonschema:"a category of the bank; general if left out"`
	Reason    string `json:"reason,omitempty" jsonschema:"what you saw that speaks for it"`
}

// UpdateIn is what update_skill takes.
type UpdateIn struct {
	ID string `json:"skill_id" jsonschema:"id of the skill to change, or its exact title"`
	ProposeIn
}

// EditOut is what came of an edit.
type EditOut struct {
	Outcome string `json:"outcome" jsonschema:"added and updated wait in quarantine; every other outcome changes nothing"`
	Number  int    `json:"number,omitempty" jsonschema:"of the edit in quarantine"`
	What    string `json:"what" jsonschema:"what happens now"`
}

func (b *bank) propose(ctx context.Context, r *sdk.CallToolRequest, in ProposeIn) (*sdk.CallToolResult, EditOut, error) {
	if in.Category == "" {
		in.Category = skill.General
	}
	return b.edit(ctx, r, skill.Edit{Op: skill.Propose, Category: in.Category, Title: in.Title, Principle: in.Principle, When: in.When, Reason: in.Reason})
}

func (b *bank) update(ctx context.Context, r *sdk.CallToolRequest, in UpdateIn) (*sdk.CallToolResult, EditOut, error) {
	return b.edit(ctx, r, skill.Edit{Op: skill.Update, ID: in.ID, Category: in.Category, Title: in.Title, Principle: in.Principle, When: in.When, Reason: in.Reason})
}

// KeepIn is what keep_skills takes.
type KeepIn struct {
	Reason string `json:"reason,omitempty"`
}

func (b *bank) keep(context.Context, *sdk.CallToolRequest, KeepIn) (*sdk.CallToolResult, EditOut, error) {
	return nil, EditOut{Outcome: skill.Kept.String(), What: "nothing changes"}, nil
}

// longest text that is kept as it came, in characters; skills have tighter limits of their own.
const longest = 2000

func (b *bank) edit(ctx context.Context, r *sdk.CallToolRequest, e skill.Edit) (*sdk.CallToolResult, EditOut, error) {
	if len([]rune(e.Reason)) > longest {
		return nil, EditOut{}, fmt.Errorf("reason has more than %d characters", longest)
	}
	g, err := b.quarantine.Propose(ctx, e, author(r))
	if err != nil {
		return nil, EditOut{}, err
	}
	out := EditOut{Outcome: g.Outcome.String(), Number: g.Number}
	switch g.Outcome {
	case skill.Added, skill.Updated:
		out.What = "it waits in quarantine; skillmaster bank judge measures it on tasks with and without it, and commits it if it helps"
	case skill.Duplicate:
		out.What = "nothing changes: a skill of the bank or in quarantine says this already"
	case skill.Unchanged:
		out.What = "nothing changes: the skill says this already"
	case skill.NotFound, skill.Ambiguous:
		out.What = "nothing changes: no one skill of the bank has this id or title; list_skills names those there are"
	default:
		out.What = "nothing changes: a text is missing, too long (title 80, principle 400, condition 200 characters) or holds markup"
	}
	return nil, out, nil
}

// ReportIn is what report_use takes.
type ReportIn struct {
	Skills  []string `json:"skill_ids" jsonschema:"ids of the skills that were used"`
	Success *bool    `json:"success,omitempty" jsonschema:"whether the task succeeded; left out if that is not known"`
	Task    string   `json:"task,omitempty" jsonschema:"the task, in a sentence"`
	Note    string   `json:"note,omitempty" jsonschema:"what helped or misled"`
}

// ReportOut is what report_use answers.
type ReportOut struct {
	Recorded bool     `json:"recorded"`
	Unknown  []string `json:"unknown" jsonschema:"ids that no skill of the current bank has"`
}

func (b *bank) report(ctx context.Context, r *sdk.CallToolRequest, in ReportIn) (*sdk.CallToolResult, ReportOut, error) {
	if len(in.Skills) == 0 || len(in.Skills) > 100 || len([]rune(in.Task+in.Note)) > longest {
		return nil, ReportOut{}, fmt.Errorf("give 1 to 100 skill_ids, and at most %d characters of task and note", longest)
	}
	bank, err := b.current(ctx)
	if err != nil {
		return nil, ReportOut{}, err
	}
	out := ReportOut{Recorded: true, Unknown: []string{}}
	for _, id := range in.Skills {
		if !slices.Contains(bank.IDs(), id) {
			out.Unknown = append(out.Unknown, id)
		}
	}
	return nil, out, b.quarantine.Hear(ctx, store.Feedback{Skills: in.Skills, Success: in.Success, Task: in.Task, Note: in.Note, Author: author(r)})
}

// author is who a client says it is.
func author(r *sdk.CallToolRequest) string {
	if p := r.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		return p.ClientInfo.Name + " " + p.ClientInfo.Version
	}
	return "unknown"
}

// Handler serves the server over streamable HTTP to who shows the token, as a bearer.
func Handler(s *sdk.Server, token string, log *slog.Logger) http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Logger: log, SessionTimeout: time.Hour, MaxRequestBodyBytes: 1 << 20})
	want := sha256.Sum256([]byte("Bearer " + token))
	protected := http.NewCrossOriginProtection().Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		switch {
		case r.URL.Path != "/mcp":
			http.NotFound(w, r)
		case token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "show the token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		default:
			protected.ServeHTTP(w, r)
		}
	})
}

func digest(file []byte) string {
	sum := sha256.Sum256(file)
	return "sha256:" + hex.EncodeToString(sum[:])
}
