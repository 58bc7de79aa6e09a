package openenv

import (
	"context"
	"encoding/json"
	"fmt"
)

// The one tool of a world.
const (
	tool     = "act"
	toolSays = "Take an action in the world. The answer is what the world shows then."
)

func toolSchema() fields {
	return object("", []string{"action"}, fields{"action": text("The action, such as: go to desk 1")})
}

// arguments reads those of the tool.
func arguments(name string, raw json.RawMessage) (action string, problem string) {
	var a struct {
		Action *string `json:"action"`
	}
	switch {
	case name != tool:
		return "", fmt.Sprintf("no tool %.40q: there is %s", name, tool)
	case strictly(raw, &a) != nil || a.Action == nil:
		return "", `the arguments are {"action": text}`
	}
	return *a.Action, ""
}

// call is an action in the form of a tool call. What is wrong with the call is told as its answer.
func (s *session) call(ctx context.Context, name string, raw json.RawMessage) (any, error) {
	action, problem := arguments(name, raw)
	if problem != "" {
		kind := "invalid_args"
		if name != tool {
			kind = "tool_not_found"
		}
		return s.result(fields{"tool_name": name, "result": nil, "error": fields{"error_type": kind, "message": problem}})
	}
	if err := s.act(ctx, action); err != nil {
		return nil, err
	}
	return s.result(fields{"tool_name": name, "result": s.last.Observation.Text, "error": nil})
}

// rpc is a JSON-RPC request.
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

// JSON-RPC's codes of errors.
const (
	rpcInvalid  = -32600
	rpcMethod   = -32601
	rpcParams   = -32602
	rpcInternal = -32603
)

func rpcError(id json.RawMessage, code int, text string) fields {
	return fields{"jsonrpc": "2.0", "id": id, "error": fields{"code": code, "message": text}}
}

func rpcResult(id json.RawMessage, v any) fields {
	return fields{"jsonrpc": "2.0", "id": id, "result": v}
}

// tool answers a JSON-RPC request of an open session.
func (s *session) tool(ctx context.Context, data json.RawMessage) any {
	var r rpc
	if err := json.Unmarshal(data, &r); err != nil || r.Version != "2.0" {
		return rpcError(nil, rpcInvalid, "no JSON-RPC 2.0 request")
	}
	if r.Method != "tools/call" {
		return listTools(r)
	}
	action, problem := arguments(r.Params.Name, r.Params.Arguments)
	if problem != "" {
		return rpcError(r.ID, rpcParams, problem)
	}
	if err := s.act(ctx, action); err != nil {
		return rpcError(r.ID, rpcInternal, s.fault(ctx, err).Message)
	}
	m := s.metadata()
	return rpcResult(r.ID, fields{
		"content": []fields{{"type": "text", "text": s.last.Observation.Text}}, "isError": false,
		"structuredContent": fields{"reward": s.last.Reward, "done": s.last.Done, "won": s.last.Success, "metadata": m},
	})
}

func listTools(r rpc) any {
	if r.Method != "tools/list" {
		return rpcError(r.ID, rpcMethod, fmt.Sprintf("no method %.40q", r.Method))
	}
	return rpcResult(r.ID, fields{"tools": []fields{{"name": tool, "description": toolSays, "inputSchema": toolSchema()}}})
}

// toolOverHTTP lists the tools; an episode needs a connection of its own.
func (h *Handler) toolOverHTTP(r rpc) (any, error) {
	switch {
	case r.Version != "2.0":
		return rpcError(r.ID, rpcInvalid, "no JSON-RPC 2.0 request"), nil
	case r.Method == "tools/call":
		return rpcError(r.ID, rpcInvalid, "tools are called over the WebSocket /ws, where a session lives"), nil
	default:
		return listTools(r), nil
	}
}
