package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// A connection beyond the limit is answered when another has ended, and none keeps the server from ending.
func TestConnectionsAreLimited(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	at, ended := make(chan string, 1), make(chan error, 1)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	go func() { ended <- listenAnywhere(ctx, "127.0.0.1:0", ok, 2, func(address string) { at <- address }) }()
	address := <-at
	open := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answered := func(c net.Conn, within time.Duration) error {
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		_, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err
	}
	first := open()
	for _, c := range []net.Conn{first, open()} {
		if err := answered(c, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	third := open()
	if err := answered(third, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one too many: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := answered(third, time.Minute); err != nil {
		t.Errorf("after another has ended: %v", err)
	}
	open() // waits at the end
	began := time.Now()
	stop()
	if err := <-ended; err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("the server ended after %v: %v", time.Since(began), err)
	}
}
