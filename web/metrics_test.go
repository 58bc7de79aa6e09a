package web

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/track"
)

// Prometheus sees every run, also one that cannot be read, and only on this machine.
func TestMetrics(t *testing.T) {
	_, run := served(t, small())
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.MkdirAll(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "run.db"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New([]string{run.Dir(), broken}, nil, time.Now, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { s.Close() })
	ask := func(host string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/metrics", nil))
		return w
	}
	w := ask("127.0.0.1:8384")
	body := w.Body.String()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != track.PrometheusType {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	for _, line := range []string{
		`skillmaster_run_readable{run="first"} 1`, `skillmaster_run_readable{run="broken"} 0`, `skillmaster_run_rounds{run="first"} 29`,
		`skillmaster_learn_kl_k3{run="first",key="learn/kl_k3"} 0.025`, `skillmaster_time_rollout_seconds{run="first",key="time/rollout_seconds"} 20`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("it lacks %s", line)
		}
	}
	if strings.Contains(body, "warm_expert_success") { // measured in the warm start alone
		t.Error("it has what the newest round did not measure")
	}
	if w := ask("example.org"); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("by another machine's name it is %d", w.Code)
	}
}
