package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/policy/openai"
	"skillmaster/rollout"
	"skillmaster/train"
)

// benchScaleCmd measures how many episodes one process holds.
type benchScaleCmd struct {
	Env      string        `help:"World: household or shop (generated), alfworld or webshop (the real ones under --data), or openenv:ADDRESS (on a server)." default:"household"`
	Data     string        `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Split    string        `help:"Split to play. Default: valid_unseen of alfworld, train elsewhere." placeholder:"NAME"`
	Episodes int           `help:"Episodes at once." default:"10000"`
	Steps    int           `help:"Steps of each." default:"50"`
	Latency  time.Duration `help:"What the mock inference server takes for a reply." default:"200ms"`
	Tokens   int           `help:"Most ids in flight; 0: no limit." default:"0"`
	HTTP     bool          `help:"Ask the mock server over HTTP, on this machine, in place of a function call." name:"http"`
	Seed     uint64        `help:"Seed of tasks and replies." default:"1"`
}

// Help is shown under --help.
func (benchScaleCmd) Help() string {
	return `Plays the episodes all at once against a policy that takes a fixed time for each reply and costs nothing, and compares the
time with the ideal: latency × steps, or what the limit on ids in flight allows, if that is more. Trajectories are kept to the end,
as a run keeps them. Processor time is that of the whole process, the mock server included. Prints JSON.

Examples:
  skillmaster bench scale --env alfworld --data ../shared/data
  skillmaster bench scale --episodes 2000 --tokens 1000000
  skillmaster bench scale --episodes 2000 --latency 2s --http`
}

// scaleBench is what was measured.
type scaleBench struct {
	Machine     machine  `json:"machine"`
	Env         string   `json:"env"`
	Episodes    int      `json:"episodes_at_once"`
	Steps       int      `json:"steps_of_each"`
	Latency     float64  `json:"latency_seconds"`
	Server      string   `json:"server"`
	Requests    int      `json:"requests"`
	Ideal       float64  `json:"ideal_seconds"`
	Seconds     float64  `json:"seconds"`
	Overhead    float64  `json:"overhead"` // seconds over ideal, less 1
	PerSecond   float64  `json:"requests_per_second"`
	CPU         *float64 `json:"cpu_us_per_request,omitempty"` // nil: the system does not tell
	Cores       *float64 `json:"cores_at_ideal_speed,omitempty"`
	Peak        *float64 `json:"peak_memory_mb,omitempty"` // resident, of the process
	Before      float64  `json:"heap_before_mb"`
	Held        float64  `json:"heap_kb_per_episode"` // trajectories, at the end
	Allocated   float64  `json:"allocated_kb_per_request"`
	Collections uint32   `json:"garbage_collections"`
	Limit       int      `json:"ids_limit"`
	InFlight    int      `json:"ids_in_flight_peak"`
	Ids         float64  `json:"ids_of_an_episode"`
	Lost        int      `json:"episodes_lost"`
}

// mock is an inference server that answers after a while, with one of a few replies.
type mock struct {
	latency time.Duration
	replies [][]int32 // stop id included
	sure    []float32 // log-probabilities: as many zeros as the longest reply has ids
}

// Sample waits without using the processor. The seed says which reply it is.
func (m mock) Sample(ctx context.Context, prompt []int32, p policy.Sampling) (policy.Sample, error) {
	t := time.NewTimer(m.latency)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return policy.Sample{}, ctx.Err()
	case <-t.C:
	}
	s := policy.Sample{IDs: m.replies[p.Seed%uint64(len(m.replies))], Stop: policy.Stopped, Version: 1}
	if !slices.Contains(p.Stop, s.IDs[len(s.IDs)-1]) { // it goes on for as long as it may, as who checks a server wants to see
		s.IDs = slices.Repeat(s.IDs, 1+p.MaxTokens/len(s.IDs))
	}
	if len(s.IDs) > p.MaxTokens {
		s.IDs, s.Stop = s.IDs[:p.MaxTokens], policy.Length
	}
	s.LogProbs = m.sure
	if n := len(s.IDs); n > len(m.sure) {
		s.LogProbs = make([]float32, n)
	}
	s.LogProbs = s.LogProbs[:len(s.IDs):len(s.IDs)]
	return s, nil
}

// Score is as sure of everything as of its own replies.
func (m mock) Score(_ context.Context, seqs [][]int32) ([][]float32, error) {
	out := make([][]float32, len(seqs))
	for i, s := range seqs {
		out[i] = make([]float32, len(s))
	}
	return out, nil
}

func (c *benchScaleCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if c.Episodes < 1 || c.Steps < 1 || c.Latency <= 0 || c.Tokens < 0 {
		return usage(errors.New("--episodes, --steps and --latency must be positive, --tokens not negative"))
	}
	suite, err := openSuite(ctx, gamesOf(c.Env), c.Data, stderr)
	if err != nil {
		return err
	}
	if c.Split == "" {
		c.Split = map[string]string{realGames: "valid_unseen"}[c.Env]
	}
	if c.Split == "" {
		c.Split = "train"
	}
	tasks, err := suite.Tasks(c.Split)
	if err != nil {
		return usage(err)
	}
	if len(tasks) == 0 {
		return fmt.Errorf("split %s has no tasks", c.Split)
	}
	for _, t := range tasks[:min(len(tasks), c.Episodes)] { // what is made at the first opening of a task is there
		e, _, err := suite.Open(ctx, t, 1)
		if err != nil {
			return err
		}
		if err := e.Close(); err != nil {
			return err
		}
	}
	fmt.Fprintln(stderr, "making a tokenizer")
	tok, err := scaleTokenizer(ctx, suite, tasks)
	if err != nil {
		return err
	}
	server := mock{latency: c.Latency}
	for _, a := range []string{"look", "inventory", "go to countertop 1", "go to shelf 1", "search[red shirt]", "click[back to search]"} {
		ids := chat.Plain().Reply(tok, rollout.FormatAction(a))
		server.replies = append(server.replies, ids)
		server.sure = make([]float32, max(len(server.sure), len(ids)))
	}
	sampler, end, err := c.server(ctx, server, tok)
	if err != nil {
		return err
	}
	defer end()
	fmt.Fprintln(stderr, "playing")
	b, err := c.play(ctx, suite, tasks, policy.NewChat(sampler, tok, chat.Plain()))
	if err != nil {
		return err
	}
	return printJSON(stdout, b)
}

// scaleTokenizer is one of the world's own words, or, where nobody shows how to play, of its first observations.
func scaleTokenizer(ctx context.Context, suite env.Suite, tasks []episode.Task) (*chat.Tokenizer, error) {
	var corpus []string
	for _, t := range tasks[:min(len(tasks), 100)] {
		e, o, err := suite.Open(ctx, t, 1)
		if err != nil {
			return nil, err
		}
		corpus = append(corpus, o.Text)
		for _, a := range o.Admissible {
			corpus = append(corpus, string(a))
		}
		if err := e.Close(); err != nil {
			return nil, err
		}
	}
	return chat.Train(func(yield func(string) bool) {
		for _, text := range corpus {
			if !yield(text) {
				return
			}
		}
	}, chat.TrainOptions{VocabSize: 2048, Special: chat.Plain().Special(), Tags: chat.Tags()})
}

// scaleContext is the most ids of a sequence.
const scaleContext = 16384

// server is the mock itself, or a client of it.
func (c *benchScaleCmd) server(ctx context.Context, m mock, tok *chat.Tokenizer) (s policy.Sampler, end func(), err error) {
	if !c.HTTP {
		return m, func() {}, nil
	}
	const name = "mock"
	h, err := openai.NewHandler(openai.Served{
		Model: name, Sampler: m, Scorer: m, Tokenizer: tok, Template: chat.Plain(), Vocab: tok.VocabSize(), Context: scaleContext, Parallel: c.Episodes,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(l) // it ends when it is closed
	}()
	end = func() {
		_ = server.Close() // nothing is under way
		<-stopped
	}
	client, err := openai.New(openai.Options{
		URL: "http://" + l.Addr().String(), Dialect: openai.SkillMaster, Model: name, Limits: openai.Limits{Parallel: c.Episodes},
	})
	if err == nil {
		s, err = client.Sampler(ctx, openai.Weights{Version: 1}, tok)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

// play plays and measures.
func (c *benchScaleCmd) play(ctx context.Context, suite env.Suite, tasks []episode.Task, p policy.Policy) (scaleBench, error) {
	b := scaleBench{Machine: thisMachine(), Env: c.Env, Episodes: c.Episodes, Latency: c.Latency.Seconds(), Server: "function call", Limit: c.Tokens}
	if c.HTTP {
		b.Server = "HTTP, the same process"
	}
	limit := c.Tokens
	if limit == 0 {
		limit = 1 << 50 // none; it is counted all the same
	}
	throttle := policy.NewThrottle(p, limit)
	cfg := rollout.DefaultConfig()
	cfg.Malformed = c.Steps + 1
	player := &rollout.Player{Suite: suite, Policy: throttle, Config: cfg}
	before := memory()
	cpu, knows := processSeconds()
	began := time.Now()
	crowd := rollout.Crowd{Episodes: c.Episodes, Tries: train.CrowdConfig{}.Complete().Tries}
	played, err := crowd.Play(ctx, c.Episodes, func(ctx context.Context, i, try int) (episode.Trajectory, error) {
		s := episode.Seed(c.Seed).Derive("scale", uint64(i), uint64(try))
		return player.Play(ctx, rollout.Start{Task: tasks[i%len(tasks)], Seed: s, Horizon: c.Steps})
	})
	if err != nil {
		return b, err
	}
	b.Seconds = time.Since(began).Seconds()
	used, _ := processSeconds()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	held := memory()
	var work float64 // ids × seconds
	for i, t := range played.Trajectories {
		if played.Lost[i] != nil {
			b.Lost++
			continue
		}
		b.Requests += len(t.Turns)
		b.Steps = max(b.Steps, len(t.Turns))
		b.Ids += float64(t.Tokens()) / float64(c.Episodes)
		prior := 0
		for _, u := range t.Turns {
			work += float64(prior+len(u.Prompt)+cfg.ActionTokens) * c.Latency.Seconds()
			prior += len(u.Prompt) + len(u.Completion)
		}
	}
	b.Ideal = max(float64(b.Steps)*c.Latency.Seconds(), work/float64(limit))
	b.Overhead = b.Seconds/b.Ideal - 1
	b.PerSecond = float64(b.Requests) / b.Seconds
	b.Before, b.Held = float64(before.HeapAlloc)/1e6, (float64(held.HeapAlloc)-float64(before.HeapAlloc))/1e3/float64(c.Episodes)
	b.Allocated = float64(after.TotalAlloc-before.TotalAlloc) / 1e3 / float64(max(1, b.Requests))
	b.Collections = after.NumGC - before.NumGC
	b.InFlight = throttle.Peak()
	if knows {
		micros, cores := 1e6*(used-cpu)/float64(max(1, b.Requests)), (used-cpu)/b.Ideal
		b.CPU, b.Cores = &micros, &cores
	}
	if mb, ok := peakMemory(); ok {
		b.Peak = &mb
	}
	runtime.KeepAlive(played)
	return b, nil
}

// processSeconds is the processor time of this process so far; false where the system does not tell (it is not Linux).
func processSeconds() (float64, bool) {
	const ticks = 100 // a second, on every Linux, as programs see it
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:])) // from the third field on
	if len(f) < 13 {
		return 0, false
	}
	user, err := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	return (user + system) / ticks, err == nil && err2 == nil
}

// peakMemory is the most that this process ever had in memory, in MB; false where the system does not tell.
func peakMemory() (float64, bool) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseFloat(kb, 64)
	return n * 1024 / 1e6, err == nil
}
