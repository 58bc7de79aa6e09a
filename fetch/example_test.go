package fetch_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"skillmaster/fetch"
)

// A file is whole or not there, and is what its checksum says.
func ExampleClient_Download() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "games") }))
	defer server.Close()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	var c fetch.Client
	got, err := c.Download(context.Background(), fetch.Request{URL: server.URL, Path: filepath.Join(folder, "games.zip")})
	fmt.Printf("%d bytes, %.8s…, %v\n", got.Bytes, got.SHA256, err)
	// Output: 5 bytes, cd7ac4c6…, <nil>
}
