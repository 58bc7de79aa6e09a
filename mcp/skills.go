package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"skillmaster/skill"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v4"
)

// pageSize is how many skills one answer to skills/list holds.
const pageSize = 50

// ListParams ask for a page of skills (SEP-2640).
type ListParams struct {
	sdk.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

// ListResult is a page of skills.
type ListResult struct {
	sdk.ResultBase
	Type       string       `json:"resultType"`
	Skills     []AgentSkill `json:"skills"`
	TTL        int          `json:"ttlMs"`
	CacheScope string       `json:"cacheScope"`
	Next       string       `json:"nextCursor,omitempty"`
}

// GetParams ask for one skill.
type GetParams struct {
	sdk.ParamsBase
	URI string `json:"uri"`
}

// GetResult is one skill.
type GetResult struct {
	sdk.ResultBase
	Type       string     `json:"resultType"`
	Skill      AgentSkill `json:"skill"`
	TTL        int        `json:"ttlMs"`
	CacheScope string     `json:"cacheScope"`
}

// AgentSkill is a skill of the extension: its front matter as it stands in the file, and its files.
type AgentSkill struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []Resource     `json:"resources"`
}

// Resource is a file of a skill.
type Resource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

// fresh is for how long an answer holds: the bank changes at most once in an iteration.
const fresh = 10_000

func agentSkill(f skill.Folder) (AgentSkill, error) {
	out := AgentSkill{URI: uri(f.Name), Resources: []Resource{{uri(f.Name), digest(f.File), len(f.File)}}}
	_, rest, opened := bytes.Cut(f.File, []byte("---\n"))
	head, _, closed := bytes.Cut(rest, []byte("\n---"))
	if !opened || !closed {
		return out, fmt.Errorf("skill %s has no front matter", f.Name)
	}
	return out, yaml.Unmarshal(head, &out.Frontmatter)
}

func uri(name string) string { return "skill://" + name + "/SKILL.md" }

func (b *bank) skillsList(ctx context.Context, _ *sdk.ServerSession, p *ListParams) (*ListResult, error) {
	from := 0
	bank, err := b.current(ctx)
	if err != nil {
		return nil, err
	}
	if p != nil && p.Cursor != "" {
		if from, err = place(p.Cursor, bank.Hash()); err != nil {
			return nil, err
		}
	}
	folders := skill.Folders(bank)
	out := &ListResult{Type: "complete", Skills: []AgentSkill{}, TTL: fresh, CacheScope: "private"}
	for _, f := range folders[min(from, len(folders)):min(from+pageSize, len(folders))] {
		s, err := agentSkill(f)
		if err != nil {
			return nil, err
		}
		out.Skills = append(out.Skills, s)
	}
	if from+pageSize < len(folders) {
		out.Next = base64.RawURLEncoding.EncodeToString([]byte(bank.Hash() + " " + strconv.Itoa(from+pageSize)))
	}
	return out, nil
}

// place is where a cursor goes on; one of another bank goes nowhere.
func place(cursor, hash string) (int, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	of, at, found := strings.Cut(string(text), " ")
	n, bad := strconv.Atoi(at)
	if err != nil || !found || bad != nil || n < 0 || of != hash {
		return 0, errors.New("the cursor is not one of this bank: list from the start")
	}
	return n, nil
}

func (b *bank) skillsGet(ctx context.Context, _ *sdk.ServerSession, p *GetParams) (*GetResult, error) {
	if p == nil {
		return nil, errors.New("uri is missing")
	}
	f, err := b.folder(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	s, err := agentSkill(f)
	if err != nil {
		return nil, err
	}
	return &GetResult{Type: "complete", Skill: s, TTL: fresh, CacheScope: "private"}, nil
}

func (b *bank) folder(ctx context.Context, at string) (skill.Folder, error) {
	bank, err := b.current(ctx)
	if err != nil {
		return skill.Folder{}, err
	}
	for _, f := range skill.Folders(bank) {
		if uri(f.Name) == at {
			return f, nil
		}
	}
	return skill.Folder{}, sdk.ResourceNotFoundError(at)
}

func (b *bank) resource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	f, err := b.folder(ctx, r.Params.URI)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/markdown", Text: string(f.File)}}}, nil
}
