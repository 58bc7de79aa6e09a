// Package fetch downloads a file so that it is there whole or not at all.
package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Request says what to download.
type Request struct {
	URL    string // http or https
	Path   string // where the file will be; its folder must be there
	SHA256 string // of the file, hex; "" if nobody knows it
}

// Result is a file that is there.
type Result struct {
	SHA256 string
	Bytes  int64
	Kept   int64 // of Bytes, those that were there from an earlier download
}

// Client downloads files. The zero Client is ready. It is safe for concurrent use if its functions are.
type Client struct {
	Transport http.RoundTripper               // nil: the standard one, which heeds HTTP_PROXY, HTTPS_PROXY and NO_PROXY
	Stall     time.Duration                   // longest wait for a connection, an answer or the next bytes; 0: 30 s
	Tries     int                             // most tries in a row that bring no more of the file; 0: 6
	Pause     func(try int) time.Duration     // before try 2, 3, …; nil: 1, 2, 4 … s, at most 30. A server's Retry-After may ask for more, up to 2 minutes
	Progress  func(done, total int64)         // told after every piece; total is -1 if the server does not say; nil: nobody
	Notice    func(text string)               // told what went wrong and is tried again; nil: nobody
	free      func(dir string) (int64, error) // bytes; nil: asks the system
}

var (
	// ErrChecksum says that a file is not the one that was asked for. It is removed.
	ErrChecksum = errors.New("wrong checksum")
	// ErrBusy says that somebody else is downloading the same file.
	ErrBusy = errors.New("another download writes it")
	// ErrSpace says that the disk has no room for the file.
	ErrSpace = errors.New("not enough room")

	errStalled = errors.New("the server sends nothing more")
)

// Download brings a file to its path. If it is there already, nothing is fetched, and its checksum compared.
//
// Until the file is whole and its checksum is right, it grows in <path>.part, with what the server says of its version
// in <path>.part.json. A download that ends early, by the context or an error, leaves both, and the next one goes on
// from there if the server can and still has that version; if it cannot tell versions apart (no strong ETag, no
// Last-Modified), the file is fetched anew. Broken connections, stalls and passing errors of the server (408, 429, 5xx)
// are tried again. A redirect from https to http is refused.
func (c *Client) Download(ctx context.Context, r Request) (Result, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return Result{}, fmt.Errorf("download %q: want an address such as https://host/file", r.URL)
	}
	res, err := c.there(r)
	if errors.Is(err, fs.ErrNotExist) {
		res, err = c.download(ctx, r)
	}
	if err != nil {
		return Result{}, fmt.Errorf("download %s: %w", u.Redacted(), err)
	}
	return res, nil
}

// there looks at a file that was downloaded before.
func (c *Client) there(r Request) (Result, error) {
	f, err := os.Open(r.Path)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	sum, n, err := digest(f)
	if err == nil && !r.fits(sum) {
		err = fmt.Errorf("%s is there already with %w: want %s, got %s (remove it to download it anew)", r.Path, ErrChecksum, r.SHA256, sum)
	}
	return Result{SHA256: sum, Bytes: n, Kept: n}, err
}

func (r Request) fits(sum string) bool { return r.SHA256 == "" || strings.EqualFold(r.SHA256, sum) }

func digest(r io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

func (c *Client) download(ctx context.Context, r Request) (Result, error) {
	p, err := openPart(r)
	if err != nil {
		return Result{}, err
	}
	defer p.file.Close()
	for best, try := p.size, 1; !p.whole(); try++ {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		wait, err := c.try(ctx, r, p)
		if ctx.Err() != nil {
			return Result{}, ctx.Err() // the part stays
		}
		if err == nil {
			break
		}
		if errors.As(err, new(permanent)) {
			return Result{}, err
		}
		if p.size > best {
			best, try = p.size, 1
		}
		if try >= positive(c.Tries, 6) {
			return Result{}, fmt.Errorf("%w (%d tries; what came stays in %s, run it again to go on)", err, try, p.path)
		}
		c.notice(err)
		if err := c.pause(ctx, try, wait); err != nil {
			return Result{}, err
		}
	}
	return p.finish(r)
}

// positive is n, or what stands for 0.
func positive[T int | time.Duration](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

func (c *Client) notice(err error) {
	if c.Notice != nil {
		c.Notice(err.Error() + ", trying again")
	}
}

func (c *Client) pause(ctx context.Context, try int, asked time.Duration) error {
	d := min(time.Second<<min(try-1, 5), 30*time.Second)
	if c.Pause != nil {
		d = c.Pause(try + 1)
	}
	t := time.NewTimer(max(d, min(asked, 2*time.Minute)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// permanent is an error that another try will not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// try asks for what is missing and writes what comes; nil if the file is whole then. wait is how long the server asks
// to be left alone.
func (c *Client) try(ctx context.Context, r Request, p *part) (wait time.Duration, err error) {
	if p.state.version() == "" { // what is here may be of another version
		if err := p.truncate(); err != nil {
			return 0, permanent{err}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := positive(c.Stall, 30*time.Second)
	watch := time.AfterFunc(patience, func() { cancel(fmt.Errorf("%w for %v", errStalled, patience)) })
	defer watch.Stop()
	resp, err := c.ask(ctx, r, p)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer resp.Body.Close()
	if done, err := p.accept(resp); done || err != nil {
		return retryAfter(resp), err
	}
	if err := c.room(p); err != nil {
		return 0, err
	}
	buffer := make([]byte, 1<<16)
	for {
		watch.Reset(patience)
		n, err := resp.Body.Read(buffer)
		if _, err := p.file.Write(buffer[:n]); err != nil {
			return 0, permanent{err}
		}
		p.size += int64(n)
		if c.Progress != nil {
			c.Progress(p.size, p.state.Total)
		}
		switch {
		case errors.Is(err, io.EOF):
			return 0, p.ended()
		case err != nil:
			return 0, cause(ctx, err)
		}
	}
}

func (c *Client) ask(ctx context.Context, r Request, p *part) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return nil, permanent{err}
	}
	req.Header.Set("Accept-Encoding", "identity") // the file's own bytes, so that they can be counted
	if p.size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
		req.Header.Set("If-Range", p.state.version())
	}
	client := http.Client{Transport: c.Transport, CheckRedirect: sameSafety}
	return client.Do(req)
}

// sameSafety follows ten redirects, but not from https to http.
func sameSafety(req *http.Request, via []*http.Request) error {
	if req.URL.Scheme == "http" && via[0].URL.Scheme == "https" {
		return permanent{fmt.Errorf("the server sends us from https to http (%s): nobody could tell who answers there", req.URL.Host)}
	}
	if len(via) >= 10 {
		return permanent{errors.New("ten redirects lead to no file")}
	}
	return nil
}

// cause says why a request failed, without the address, which may hold a signature.
func cause(ctx context.Context, err error) error {
	if stalled := context.Cause(ctx); errors.Is(stalled, errStalled) {
		return stalled
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the connection broke: %w", err)
	}
	var dns *net.DNSError
	if errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, &dns) && dns.IsNotFound {
		return permanent{err}
	}
	return err
}

// retryAfter is how long a server asks to be left alone, in seconds; it may also give a date, which is passed over.
func retryAfter(resp *http.Response) time.Duration {
	n, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, 3600)) * time.Second
}

// room sees that what is missing fits on the disk.
func (c *Client) room(p *part) error {
	if p.state.Total < 0 {
		return nil
	}
	free := c.free
	if free == nil {
		free = freeSpace
	}
	dir := filepath.Dir(p.path)
	n, err := free(dir)
	if err != nil {
		return nil //nolint:nilerr // where nobody can tell, writing will
	}
	if need := p.state.Total - p.size; n < need {
		return permanent{fmt.Errorf("%w in %s: %s are missing of the file, %s are free", ErrSpace, dir, megabytes(need), megabytes(n))}
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
