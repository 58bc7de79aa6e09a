package web_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skillmaster/store/storetest"
	"skillmaster/web"
)

// The dashboard shows the runs it is told of, to this machine alone.
func Example() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	run, err := storetest.Make(context.Background(), filepath.Join(folder, "first"), storetest.Shape{Seed: 1, Iterations: 2, Tasks: 2, Group: 2, Panel: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	dashboard := web.New(nil, []string{folder}, time.Now, slog.New(slog.DiscardHandler))
	defer dashboard.Close()
	for _, host := range []string{"localhost:8384", "elsewhere.example"} {
		w := httptest.NewRecorder()
		dashboard.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil))
		fmt.Println(host, w.Code, strings.Contains(w.Body.String(), "/runs/first/"))
	}
	// Output:
	// localhost:8384 200 true
	// elsewhere.example 421 false
}
