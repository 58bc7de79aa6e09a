package remote

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// CheckToken reports a token that protects nothing; "" is none at all.
func CheckToken(token string) error {
	if token != "" && len(token) < 16 {
		return errors.New("a token needs 16 characters at least: others can guess shorter ones")
	}
	return nil
}

// May says who may ask: who shows the token, or, where there is none, programs on this machine. A page in a browser of this
// machine is none: it comes with an Origin, or with a host of its own that was made to mean this machine. status is the
// answer's where there is an error.
func May(r *http.Request, shown, token string) (status int, err error) {
	if token != "" {
		if subtle.ConstantTimeCompare([]byte(shown), []byte(token)) != 1 {
			return http.StatusUnauthorized, errors.New("wrong or missing token")
		}
		return 0, nil
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr) // what cannot be read is not local
	if !Local(host) || !Local(from) || r.Header.Get("Origin") != "" {
		return http.StatusForbidden, errors.New("without a token only programs on this machine may ask")
	}
	return 0, nil
}

// Hurry cuts off a body that comes too slowly, until the returned function is called. A deadline of the server's own would
// go on to cut off the answer.
func Hurry(w http.ResponseWriter) (relax func()) {
	slow := time.AfterFunc(BodyTime, func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) })
	return func() { slow.Stop() }
}

// Times of a server. Requests may compute for long; connections may not idle. Grace is how long requests under way may go
// on after a server was told to end.
const (
	HeaderTime = 10 * time.Second
	BodyTime   = time.Minute
	IdleTime   = 2 * time.Minute
	Grace      = 5 * time.Second
)

// Connections is how many a server has at a time, if nothing else is said.
const Connections = 1024

// Serve answers on l until the context ends, then lets requests under way end for a few seconds, and returns nil. An
// address that other machines can reach is refused without a token. connections is the most at a time; 0: Connections.
func Serve(ctx context.Context, l net.Listener, h http.Handler, token string, connections int, log *slog.Logger) error {
	defer l.Close()
	if a, ok := l.Addr().(*net.TCPAddr); token == "" && !(ok && a.IP.IsLoopback()) {
		return fmt.Errorf("%s can be reached by other machines: set a token, or listen on 127.0.0.1", l.Addr())
	}
	if connections <= 0 {
		connections = Connections
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: HeaderTime, IdleTimeout: IdleTime, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), Grace)
		defer cancel()
		err := s.Shutdown(late)
		if err != nil {
			err = s.Close()
		}
		ended <- err
	}()
	err := s.Serve(Limit(l, connections))
	cancel()
	return errors.Join(unlessClosed(err), <-ended)
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Limit is a listener that accepts so many connections at a time; further ones wait.
func Limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Close ends a wait for a slot, too: a server that shuts down closes connections only after Accept has returned.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &counting{Conn: c, slots: l.slots}, nil
}

// counting is a connection that gives its slot back when it is closed.
type counting struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

func (c *counting) Close() error {
	c.once.Do(func() { <-c.slots })
	return c.Conn.Close()
}
