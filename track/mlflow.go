package track

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"skillmaster/policy/remote"
	"skillmaster/report"
)

// Limits of MLflow's REST API on one request, and on texts.
const (
	mostMetrics    = 999 // of a batch: 1000 in all, and one is a tag
	mostParams     = 100
	longestName    = 250
	longestSetting = 6000
	longestTag     = 5000
)

// Tags by which a run is found again.
const (
	tagRun  = "skillmaster.run"  // which run it is
	tagSent = "skillmaster.sent" // the newest round that the server has whole: its step, and when it was kept
)

// MLflowOptions say where a server is, and who we are.
type MLflowOptions struct {
	URL        string // such as http://127.0.0.1:5000; it may have a path
	Experiment string // made if there is none of the name
	User       string // with a name, Key is its password; "": Key is a bearer token
	Key        remote.Key
	Notice     func(text string) // told of tries that failed; may be nil
	Pause      time.Duration     // longest wait between two tries; 0: ten seconds
}

// MLflow is a tracking server that speaks MLflow's REST API 2.0. Safe for concurrent use, but one at a time may send a run.
type MLflow struct {
	options MLflowOptions
	base    *url.URL
	http    *http.Client
}

// NewMLflow returns a client. The key is asked for before each request; it travels encrypted, or not beyond this machine.
func NewMLflow(o MLflowOptions) (*MLflow, error) {
	if o.Experiment == "" {
		return nil, errors.New("the experiment has no name")
	}
	base, err := remote.Address(o.URL, o.Key != nil, false)
	if err != nil {
		return nil, err
	}
	client, err := remote.NewClient(remote.NewTransport(1))
	if err != nil {
		return nil, err
	}
	if o.Pause == 0 {
		o.Pause = 10 * time.Second
	}
	return &MLflow{o, base.JoinPath("api/2.0/mlflow"), client}, nil
}

// Sent says what a server was given.
type Sent struct {
	Rounds int // that it did not have
	// Outdated: it has rounds that the run has since taken back. MLflow cannot forget points, so that it keeps those, and is
	// given only rounds after them.
	Outdated bool
}

// Send brings the server's record of a run up to date: settings as params when it is made, every number of the rounds
// that it lacks as metrics, and whether the run is finished. What the server has is read from a tag of the run there, which
// is set with the last number of a round, so that Send may be called again after any failure: numbers that were sent and
// not noted are sent again as they were, and a server with a database keeps one of them.
func (m *MLflow) Send(ctx context.Context, h *report.History) (Sent, error) {
	run, err := m.open(ctx, h)
	if err != nil {
		return Sent{}, err
	}
	rounds := Rounds(h)
	last, outdated := run.sent(rounds)
	rounds = slices.DeleteFunc(rounds, func(r Round) bool { return r.Report <= last })
	if err := m.sendRounds(ctx, run.Info.ID, rounds); err != nil {
		return Sent{}, err
	}
	status := "RUNNING"
	if h.Finished() {
		status = "FINISHED"
	}
	if status != run.Info.Status {
		update := map[string]any{"run_id": run.Info.ID, "status": status}
		if status == "FINISHED" {
			update["end_time"] = h.Last().UnixMilli()
		}
		if err := m.post(ctx, "runs/update", update, nil); err != nil {
			return Sent{}, err
		}
	}
	return Sent{len(rounds), outdated}, nil
}

// named is a param or a tag.
type named struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// metric is a point of a curve.
type metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"` // milliseconds
	Step      int64   `json:"step"`
}

// batch is the body of runs/log-batch.
type batch struct {
	Run     string   `json:"run_id"`
	Metrics []metric `json:"metrics,omitempty"`
	Params  []named  `json:"params,omitempty"`
	Tags    []named  `json:"tags,omitempty"`
}

// remoteRun is what of a run on the server counts here.
type remoteRun struct {
	Info struct {
		ID     string `json:"run_id"`
		Status string `json:"status"`
	} `json:"info"`
	Data struct {
		Tags []named `json:"tags"`
	} `json:"data"`
}

// sent is the step of the newest round that the server has, 0 if it has none, and whether that round has been taken back.
func (r remoteRun) sent(rounds []Round) (last int, outdated bool) {
	for _, t := range r.Data.Tags {
		if t.Key != tagSent {
			continue
		}
		step, _, _ := strings.Cut(t.Value, " ")
		last, _ = strconv.Atoi(step) // one that somebody else wrote counts as nothing sent
		outdated = last > 0 && !slices.ContainsFunc(rounds, func(r Round) bool { return sentTag(r) == t.Value })
	}
	return last, outdated
}

func sentTag(r Round) string {
	return fmt.Sprintf("%d %s", r.Report, r.Kept.Kept.UTC().Format(time.RFC3339Nano))
}

// open finds the run on the server, or makes it. Its settings are sent until a round is noted.
func (m *MLflow) open(ctx context.Context, h *report.History) (remoteRun, error) {
	experiment, err := m.experiment(ctx)
	if err != nil {
		return remoteRun{}, err
	}
	id := identity(h)
	var found struct {
		Runs []remoteRun `json:"runs"`
	}
	search := map[string]any{
		"experiment_ids": []string{experiment}, "filter": "tags.`" + tagRun + "` = '" + id + "'", "run_view_type": "ACTIVE_ONLY", "max_results": 1,
	}
	if err := m.post(ctx, "runs/search", search, &found); err != nil {
		return remoteRun{}, err
	}
	var made struct {
		Run remoteRun `json:"run"`
	}
	if len(found.Runs) > 0 {
		made.Run = found.Runs[0]
	} else {
		tags := []named{
			{tagRun, id}, {"skillmaster.program", cut(h.Manifest.Program, longestTag)}, {"skillmaster.world", cut(h.Manifest.World, longestTag)},
			{"skillmaster.command", cut(strings.Join(h.Manifest.Command, " "), longestTag)},
		}
		create := map[string]any{"experiment_id": experiment, "run_name": h.Name, "start_time": h.Manifest.Created.UnixMilli(), "tags": tags}
		if err := m.post(ctx, "runs/create", create, &made); err != nil {
			return remoteRun{}, err
		}
	}
	if made.Run.Info.ID == "" {
		return remoteRun{}, errors.New("the server's reply names no run: is it an MLflow server?")
	}
	if last, _ := made.Run.sent(nil); last > 0 {
		return made.Run, nil
	}
	settings, err := params(h.Manifest.Config)
	if err != nil {
		return remoteRun{}, err
	}
	for some := range slices.Chunk(settings, mostParams) {
		if err := m.post(ctx, "runs/log-batch", batch{Run: made.Run.Info.ID, Params: some}, nil); err != nil {
			return remoteRun{}, err
		}
	}
	return made.Run, nil
}

// experiment finds the experiment, or makes it.
func (m *MLflow) experiment(ctx context.Context) (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	err := m.call(ctx, http.MethodGet, "experiments/get-by-name?experiment_name="+url.QueryEscape(m.options.Experiment), nil, &found)
	if refused := (*remote.StatusError)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		err = m.post(ctx, "experiments/create", map[string]any{"name": m.options.Experiment}, &found.Experiment)
	}
	if err == nil && found.Experiment.ID == "" {
		err = errors.New("the server's reply names no experiment: is it an MLflow server?")
	}
	return found.Experiment.ID, err
}

// sendRounds sends as many whole rounds at once as a batch may hold. A round that is larger than one goes in several, of
// which the last notes it.
func (m *MLflow) sendRounds(ctx context.Context, run string, rounds []Round) error {
	for len(rounds) > 0 {
		metrics := points(rounds[0])
		n := 1
		for ; n < len(rounds) && len(metrics)+len(rounds[n].Values) <= mostMetrics; n++ {
			metrics = append(metrics, points(rounds[n])...)
		}
		for len(metrics) > mostMetrics {
			if err := m.post(ctx, "runs/log-batch", batch{Run: run, Metrics: metrics[:mostMetrics]}, nil); err != nil {
				return err
			}
			metrics = metrics[mostMetrics:]
		}
		if err := m.post(ctx, "runs/log-batch", batch{Run: run, Metrics: metrics, Tags: []named{{tagSent, sentTag(rounds[n-1])}}}, nil); err != nil {
			return err
		}
		rounds = rounds[n:]
	}
	return nil
}

func points(r Round) []metric {
	out := make([]metric, 0, len(r.Values))
	for _, key := range r.Keys() {
		out = append(out, metric{mlflowName(key), r.Values[key], r.Kept.Kept.UnixMilli(), int64(r.Report)})
	}
	return out
}

// identity tells a run from all others, wherever its directory lies.
func identity(h *report.History) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", h.Manifest.Created.UnixMilli(), h.Manifest.Seed, h.Manifest.Config))
	return hex.EncodeToString(sum[:16])
}

// params are settings by dotted keys, sorted. Lists and values that are not objects are JSON; texts stand bare.
func params(config json.RawMessage) ([]named, error) {
	values := map[string]string{}
	var walk func(at string, b json.RawMessage) error
	walk = func(at string, b json.RawMessage) error {
		var fields map[string]json.RawMessage
		if json.Unmarshal(b, &fields) == nil && len(fields) > 0 {
			for k, v := range fields {
				if err := walk(strings.TrimPrefix(at+"."+k, "."), v); err != nil {
					return err
				}
			}
			return nil
		}
		if at == "" {
			return nil // no settings
		}
		var text string
		if json.Unmarshal(b, &text) != nil {
			var small bytes.Buffer
			if err := json.Compact(&small, b); err != nil {
				return err
			}
			text = small.String()
		}
		values[mlflowName(at)] = cut(text, longestSetting)
		return nil
	}
	if err := walk("", config); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	out := make([]named, 0, len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, named{k, values[k]})
	}
	return out, nil
}

// mlflowName is a key as MLflow takes it: letters, digits, '_', '-', '.', blanks and, between stream and quantity, one
// slash. Other bytes become '_' and their two hexadecimal digits; a key that is too long ends in its hash.
func mlflowName(key string) string {
	var b strings.Builder
	slash := strings.Index(key, "/")
	for i := range len(key) {
		c := key[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_-. ", c) >= 0, i == slash && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	name := b.String()
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(key))
		name = name[:longestName-17] + "_" + hex.EncodeToString(sum[:8])
	}
	return name
}

// cut shortens a text to so many bytes.
func cut(text string, most int) string {
	const sign = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(sign)], "") + sign
}

func (m *MLflow) post(ctx context.Context, path string, body, reply any) error {
	return m.call(ctx, http.MethodPost, path, body, reply)
}

// call asks the server, more than once if need be.
func (m *MLflow) call(ctx context.Context, method, path string, body, reply any) error {
	const (
		tries    = 4
		patience = time.Minute
		most     = 32 << 20 // bytes of a reply
	)
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	key, err := m.options.Key.Secret()
	if err != nil {
		return err
	}
	name, query, _ := strings.Cut(path, "?")
	at := m.base.JoinPath(name)
	at.RawQuery = query
	retries := remote.Retries{Tries: tries, Pause: m.options.Pause, Notice: m.options.Notice}
	err = retries.Do(ctx, data, func() error {
		req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(data))
		if err != nil {
			return remote.Final(err)
		}
		req.Header.Set("User-Agent", "skillmaster")
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		switch {
		case m.options.User != "":
			req.SetBasicAuth(m.options.User, key)
		case key != "":
			req.Header.Set("Authorization", "Bearer "+key)
		}
		answer, _, _, err := remote.Exchange(ctx, m.http, req, key, patience, most)
		if err == nil && reply != nil {
			if err = json.Unmarshal(answer, reply); err != nil {
				err = remote.Final(fmt.Errorf("its reply cannot be read: %w", err))
			}
		}
		basic := ""
		if m.options.User != "" { // a server may quote what it was shown
			basic = base64.StdEncoding.EncodeToString([]byte(m.options.User + ":" + key))
		}
		return remote.Scrubbed(remote.Scrubbed(err, key), basic)
	})
	if err != nil {
		return fmt.Errorf("MLflow at %s, %s: %w", m.base.Host, name, err)
	}
	return nil
}
