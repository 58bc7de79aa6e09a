package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"skillmaster/episode"
	"skillmaster/store/storetest"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// shotsDir is the environment variable that names where screenshots are left.
const shotsDir = "SKILLMASTER_SHOTS"

// browser is a page in a real browser, with what went wrong in it.
type browser struct {
	t    *testing.T
	ctx  context.Context
	host string // the only one that may be asked

	mu     sync.Mutex
	faults []string
}

// findBrowser looks for Chromium. Without it the test is skipped, and fails where CI=true.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no Chromium: install it (apt-get install chromium)")
	}
	t.Skip("NOT TESTED in a browser: there is no Chromium on this machine (apt-get install chromium)")
	return ""
}

// newBrowser starts a browser that reaches this machine alone.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findBrowser(t)), chromedp.NoSandbox, // CI is root
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	b := &browser{t: t}
	ctx, endTab := chromedp.NewContext(allocator, chromedp.WithListener(b.notice))
	t.Cleanup(endTab)
	b.ctx = ctx
	if err := chromedp.Do(b.ctx, chromedp.Navigate("about:blank")); err != nil { // starts it
		t.Fatal(err)
	}
	return b
}

// notice keeps what a page should not do.
func (b *browser) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := func(format string, args ...any) { b.faults = append(b.faults, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault("console: %s %v", e.Type, e.Args)
		}
	case *runtime.EventExceptionThrown:
		fault("exception: %s", e.ExceptionDetails.Text)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork {
			fault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != b.host && u.Scheme != "data" && u.Scheme != "about" {
			fault("a request leaves: %s", e.Request.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			fault("%s is answered with %d", e.Response.URL, e.Response.Status)
		}
	}
}

// patience is how long anything may take in a browser on a busy machine.
const patience = 4 * time.Minute

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// value is what a JavaScript expression comes to.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// call gives the browser a command of its protocol.
func call[P, R any](b *browser, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	r, err := chromedp.Call(ctx, c, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// noFaults fails the test for whatever went wrong since it was last asked.
func (b *browser) noFaults(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("%s: %s", where, f)
	}
	b.faults = nil
}

// await waits until a JavaScript expression is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !value[bool](b, expression); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never true: %s", expression)
		}
	}
}

// is checks that a JavaScript expression is true.
func (b *browser) is(expression, otherwise string) {
	b.t.Helper()
	if !value[bool](b, expression) {
		b.t.Error(otherwise)
	}
}

// look is a size and a colour scheme.
type look struct {
	name          string
	width, height int64
	scheme        string
}

var looks = []look{
	{"desktop-light", 1280, 900, "light"},
	{"desktop-dark", 1280, 900, "dark"},
	{"phone-light", 360, 780, "light"},
	{"phone-dark", 360, 780, "dark"},
}

func (b *browser) take(l look) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(l.width, l.height))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}})
}

// shoot leaves a picture of the whole page, if somebody asked for pictures.
func (b *browser) shoot(name string) {
	dir := os.Getenv(shotsDir)
	if dir == "" {
		return
	}
	b.t.Helper()
	whole := true
	picture := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole}).Data
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// audit is what is wrong with a page for who cannot see it well, or has a small screen, in words.
const audit = `(() => {
	const wrong = [];
	const shown = e => e.checkVisibility({checkVisibilityCSS: true, checkOpacity: true});
	const name = e => (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || e.title || "").trim();
	if (document.querySelectorAll("h1").length !== 1) wrong.push("there is not one first heading");
	if (!document.title || document.documentElement.lang !== "en") wrong.push("no title or language");
	for (const e of document.querySelectorAll("a[href], button, input, select, summary, [role=img], [role=region], [role=group]")) if (shown(e) && !name(e)) wrong.push("no name: " + e.outerHTML.slice(0, 120));
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push("two elements have the id " + id);
	if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page is " + document.documentElement.scrollWidth + " wide, the screen " + innerWidth);
	const tab = document.querySelector(".tabs [aria-current]")?.getBoundingClientRect();
	if (tab && (tab.left < 0 || tab.right > innerWidth + 1)) wrong.push("the current tab is out of sight, from " + tab.left + " to " + tab.right);
	const parse = c => (c.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
	const light = ([r, g, b]) => { const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
	const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > .99) return c; } return [255, 255, 255]; };
	const seen = new Set();
	for (const e of document.querySelectorAll("body *")) {
		const text = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
		if (!text || !shown(e) || e.closest(".skip, dialog")) continue;
		const svg = e instanceof SVGElement, s = getComputedStyle(e);
		const ink = parse(svg ? s.fill : s.color), paper = ground(svg ? e.closest("svg").parentElement : e);
		const a = light(ink), b = light(paper), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		const key = e.tagName + e.getAttribute("class");
		if (ratio < 4.5 && !seen.has(key)) { seen.add(key); wrong.push("contrast " + ratio.toFixed(2) + ": " + key + " " + e.textContent.trim().slice(0, 40)); }
	}
	return wrong;
})()`

func (b *browser) audit(where string) {
	b.t.Helper()
	for _, w := range value[[]string](b, audit) {
		b.t.Errorf("%s: %s", where, w)
	}
}

// lines is a writer that says when it has been told something.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serving executes a command line that serves, and returns its address and what waits for its end.
func serving(t *testing.T, args ...string) (address string, end func(stop bool)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var said lines
	done := make(chan int, 1)
	go func() { done <- execute(ctx, args, strings.NewReader(""), &said, &said) }()
	at := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if m := at.FindStringSubmatch(said.String()); m != nil {
			address = m[1]
			break
		}
		if time.Now().After(deadline) || len(done) > 0 {
			cancel()
			t.Fatalf("skillmaster %s serves nothing:\n%s", strings.Join(args, " "), said.String())
		}
	}
	return address, func(stop bool) {
		t.Helper()
		want := exitDone
		if stop {
			cancel()
		}
		defer cancel()
		if code := <-done; code != want {
			t.Errorf("skillmaster %s ends with %d, want %d\n%s", strings.Join(args, " "), code, want, said.String())
		}
	}
}

// The dashboard in a real browser: pages follow a run while it trains, and every view of that run and of a made-up one
// with more in it loads without errors, without asking other machines, and can be read and used with the keyboard.
func TestDashboardInBrowser(t *testing.T) {
	b := newBrowser(t)
	parent := t.TempDir()
	real, rich, hostile := filepath.Join(parent, "trained"), filepath.Join(parent, "made-up"), filepath.Join(parent, "hostile")
	t.Run("live", func(t *testing.T) {
		b.t = t
		host, end := serving(t, "train", "--preset", "smoke", "--run", real, "--serve", "127.0.0.1:0", "--set", "train.gate.rule=always")
		b.host = host
		b.do(chromedp.Navigate("http://" + host + "/runs/trained/"))
		b.await(`document.documentElement.dataset.stream === "open"`)
		b.await(`Number(document.documentElement.dataset.updates) >= 1`)
		b.await(`document.querySelector("#live").textContent !== ""`)
		b.do(chromedp.Navigate("about:blank")) // before the server goes
		b.noFaults("live")
		end(false)
	})
	run, err := storetest.Make(t.Context(), rich, storetest.Shape{Seed: episode.Seed(1), Iterations: 26, Tasks: 6, Group: 8, Evaluate: 3, Panel: 24, Start: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	text := `"><script>window.struck=1</script><img src=x onerror="window.struck=1">` + "\u202e\x1b[2J<|im_end|>\xff" + strings.Repeat("long", 1000)
	run, err = storetest.Make(t.Context(), hostile, storetest.Shape{Seed: 1, Iterations: 26, Tasks: 6, Group: 4, Evaluate: 3, Panel: 6, Start: time.Now().Add(-time.Hour), Text: text})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	host, end := serving(t, "serve", "--run", real, "--run", rich, "--run", hostile, "--runs", filepath.Join(parent, "none"), "--listen", "127.0.0.1:0")
	b.host = host
	views := map[string]string{
		"runs": "/", "compare": "/compare?run=trained&run=made-up", "overview": "/runs/made-up/", "trajectories": "/runs/made-up/trajectories",
		"trajectory": "/runs/made-up/trajectories/29/0/0", "edits": "/runs/made-up/edits", "edit": "/runs/made-up/edits/24/0/0", "bank": "/runs/made-up/bank",
		"evaluations": "/runs/made-up/evaluations", "evaluation": "/runs/made-up/evaluations/2", "health": "/runs/made-up/health",
		"trained-overview": "/runs/trained/", "trained-trajectories": "/runs/trained/trajectories", "trained-trajectory": "",
		"trained-edits": "/runs/trained/edits", "trained-bank": "/runs/trained/bank", "trained-evaluations": "/runs/trained/evaluations", "trained-evaluation": "/runs/trained/evaluations/1",
		"trained-health": "/runs/trained/health",
	}
	b.do(chromedp.Navigate("http://" + host + views["trained-trajectories"]))
	views["trained-trajectory"] = value[string](b, `document.querySelector("a.play").getAttribute("href")`)
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			b.t = t
			b.take(l)
			for name, path := range views {
				b.do(chromedp.Navigate("http://"+host+path), chromedp.WaitReady("main"))
				b.audit(name)
				b.noFaults(name)
				b.shoot(name + "-" + l.name)
			}
		})
	}
	t.Run("hostile", func(t *testing.T) { // text of any kind and length neither does anything nor breaks a page
		b.t = t
		b.take(looks[2])
		for name, path := range views {
			if !strings.HasPrefix(path, "/runs/made-up/") {
				continue
			}
			b.do(chromedp.Navigate("http://"+host+strings.Replace(path, "made-up", "hostile", 1)), chromedp.WaitReady("main"))
			b.audit(name)
			b.is(`window.struck === undefined`, name+": the text was run")
			b.noFaults(name)
			b.shoot("hostile-" + name)
		}
	})
	t.Run("keys", func(t *testing.T) {
		b.t = t
		b.take(looks[0])
		b.do(chromedp.Navigate("http://"+host+"/runs/made-up/trajectories"), chromedp.KeyEvent("k"))
		b.await(`location.search === "?iteration=25" && document.readyState === "complete"`)
		b.do(chromedp.KeyEvent("j"))
		b.await(`location.search === "?iteration=26" && document.readyState === "complete"`)
		b.do(chromedp.KeyEvent("1"))
		b.await(`location.pathname === "/runs/made-up/" && document.readyState === "complete"`)
		b.do(chromedp.KeyEvent("t"))
		b.is(`document.documentElement.dataset.theme === "light"`, "t does not change the colours")
		b.do(chromedp.KeyEvent("?"))
		b.is(`document.querySelector("#keys").open`, "? shows no list of keys")
		b.do(chromedp.KeyEvent(kb.Escape))
		b.is(`!document.querySelector("#keys").open`, "Escape does not close the list of keys")
		b.do(chromedp.Focus("svg.chart"), chromedp.KeyEvent(kb.ArrowRight))
		b.is(`document.querySelector(".readout").textContent.startsWith("iteration ")`, "the arrow keys show no values of a chart")
	})
	t.Run("focus", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate("http://" + host + "/runs/made-up/"))
		var order []string
		for range 10 {
			b.do(chromedp.KeyEvent(kb.Tab))
			order = append(order, value[string](b, `document.activeElement.textContent.trim() || document.activeElement.id`))
		}
		want := "Skip to the content|SkillMaster|made-up|◐|?|Overview|Trajectories|Edits|Bank|Evaluation"
		if got := strings.Join(order, "|"); got != want && strings.Replace(want, "◐", "○", 1) != got {
			t.Errorf("the focus goes %s, want %s", got, want)
		}
	})
	b.t = t
	b.do(chromedp.Navigate("about:blank"))
	b.noFaults("keys")
	end(true)
}
