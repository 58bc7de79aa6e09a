package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/env/webshop"
)

// A catalogue is downloaded, checked against its checksums, read, listed and packed; what is not what was released is named.
func TestDataOfTheShop(t *testing.T) {
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr strings.Builder
		if code := execute(context.Background(), args, strings.NewReader(""), &stdout, &stderr); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String()
	}
	made := t.TempDir()
	run(exitDone, "data", "shop", "--to", made, "--products", "70")
	server := httptest.NewServer(http.FileServer(http.Dir(made)))
	defer server.Close()
	names, to := webshop.FileNames(webshop.Small), filepath.Join(t.TempDir(), "shop")
	get := []string{"data", "get", "webshop", "--to", to}
	kinds := []string{"products", "attributes", "human"}
	for i, name := range kinds {
		get = append(get, "--url", name+"="+server.URL+"/"+names[i])
	}
	if _, errs := run(exitFailed, get...); !strings.Contains(errs, "not items_shuffle_1000.json as it was released") || !strings.Contains(errs, "--url products=") {
		t.Errorf("other files than the released ones: %s", errs)
	}
	for i, name := range kinds {
		text, err := os.ReadFile(filepath.Join(made, names[i]))
		if err != nil {
			t.Fatal(err)
		}
		get = append(get, "--sha256", fmt.Sprintf("%s=%x", name, sha256.Sum256(text)))
	}
	if out, _ := run(exitDone, get...); !strings.Contains(out, "ready: skillmaster train --env webshop --data "+to) {
		t.Errorf("get: %s", out)
	}
	if out, _ := run(exitDone, "data", "list", "--env", "webshop", "--data", to); !strings.Contains(out, "report") {
		t.Errorf("list: %s", out)
	}
	if out, _ := run(exitFailed, "data", "verify", "--env", "webshop", "--data", to, "--released"); strings.Count(out, "wrong:") != 3 || !strings.Contains(out, "70 products of 70 entries") {
		t.Errorf("verify: %s", out)
	}
	packed := filepath.Join(t.TempDir(), "packed")
	if out, _ := run(exitDone, "data", "import", to, "--env", "webshop", "--to", packed); strings.Count(out, ".json.gz") != 3 {
		t.Errorf("import: %s", out)
	}
	if out, _ := run(exitDone, "data", "verify", "--env", "webshop", "--data", packed, "--json"); !strings.Contains(out, `"products": 70`) {
		t.Errorf("verify what was packed: %s", out)
	}
	if _, errs := run(exitFailed, "data", "import", to, "--env", "webshop", "--to", packed); !strings.Contains(errs, "is there already") {
		t.Errorf("import over it: %s", errs)
	}
	if err := os.WriteFile(filepath.Join(to, names[0]), []byte(`[{"asin":"B000000001","name":"x","category":"c","query":"q","pricing":"8"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, errs := run(exitFailed, "data", "import", to, "--env", "webshop", "--to", none); !strings.Contains(errs, `B000000001: price "8" has no $`) || !strings.Contains(errs, "nothing is written") {
		t.Errorf("a broken catalogue: %s", errs)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("something is written of a broken catalogue")
	}
	if out, _ := run(exitDone, "data", "verify", "--env", "shop"); !strings.Contains(out, "1330 of 1330 goals can be won") {
		t.Errorf("verify the generated shop: %s", out)
	}
	for _, wrong := range [][]string{
		{"data", "pack", "--env", "shop", "--to", none},
		{"data", "get", "alfworld", "--full", "--to", none},
		{"data", "import", to, "--full", "--to", none},
		{"data", "get", "webshop", "--url", "games=x", "--to", none},
		{"data", "verify", "--full"},
	} {
		run(exitUsage, wrong...)
	}
}
