package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// part is a file that is not whole yet, and what is known of the whole.
type part struct {
	path  string
	file  *os.File // locked, positioned at its end
	size  int64
	kept  int64 // of size, from an earlier download
	state state
}

// state is what the server said of the version that a part is of.
type state struct {
	URL      string `json:"url"` // without a password
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"last_modified,omitempty"`
	Total    int64  `json:"total"` // bytes; -1 if not known
}

// version is the validator for If-Range; "" if there is none that tells versions apart.
func (s state) version() string {
	if s.ETag != "" && !strings.HasPrefix(s.ETag, "W/") {
		return s.ETag
	}
	return s.Modified
}

func (p *part) statePath() string { return p.path + ".json" }

// openPart opens what an earlier download of the same address left.
func openPart(r Request) (*part, error) {
	p := &part{path: r.Path + ".part"}
	var err error
	if p.file, err = os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if err = lock(p.file); err != nil {
		err = fmt.Errorf("%s: %w", p.path, err)
	} else {
		err = p.load(r)
	}
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

func (p *part) load(r Request) (err error) {
	text, err := os.ReadFile(p.statePath())
	if err == nil {
		err = json.Unmarshal(text, &p.state)
	}
	if p.size, _ = p.file.Seek(0, io.SeekEnd); err != nil || p.state.URL != redacted(r.URL) || p.state.Total >= 0 && p.size > p.state.Total {
		return p.truncate()
	}
	p.kept = p.size
	return nil
}

func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Redacted()
}

// truncate forgets what is here.
func (p *part) truncate() error {
	p.size, p.kept, p.state = 0, 0, state{Total: -1}
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

// whole tells whether nothing is missing.
func (p *part) whole() bool { return p.state.Total >= 0 && p.size == p.state.Total }

// accept looks at an answer: done if there is nothing to read, an error if it cannot be gone on with.
func (p *part) accept(resp *http.Response) (done bool, err error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return false, p.begin(resp)
	case code == http.StatusPartialContent && p.size > 0:
		return false, p.follows(resp)
	case code == http.StatusRequestedRangeNotSatisfiable && p.size > 0:
		if _, total, ok := contentRange(resp); ok && total == p.size {
			p.state.Total = total
			return true, nil
		}
		return false, p.again("it has no bytes behind those that are here")
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		return false, fmt.Errorf("the server says %s", resp.Status)
	case code == http.StatusConflict || code == http.StatusUnauthorized || code == http.StatusForbidden:
		return false, permanent{fmt.Errorf("the server says %s: it does not give this file to everybody (any more)", resp.Status)}
	default:
		return false, permanent{fmt.Errorf("the server says %s", resp.Status)}
	}
}

// begin starts a version from its first byte.
func (p *part) begin(resp *http.Response) error {
	err := p.truncate() // first, so that no bytes of one version are ever beside the state of another
	p.state = state{
		URL: redacted(original(resp.Request).URL.String()), ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified"),
		Total: resp.ContentLength,
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(p.state)
	}
	if err == nil {
		err = os.WriteFile(p.statePath(), text, 0o644)
	}
	if err != nil {
		return permanent{err}
	}
	return nil
}

// original is the request before redirects.
func original(req *http.Request) *http.Request {
	for req.Response != nil {
		req = req.Response.Request
	}
	return req
}

// follows sees that an answer goes on where the part ends, in the same version.
func (p *part) follows(resp *http.Response) error {
	start, total, ok := contentRange(resp)
	tag, modified := resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	switch {
	case !ok || start != p.size:
		return p.again(fmt.Sprintf("it answers with other bytes than those from %d on", p.size))
	case tag != "" && p.state.ETag != "" && tag != p.state.ETag,
		tag == "" && modified != "" && p.state.Modified != "" && modified != p.state.Modified,
		total >= 0 && p.state.Total >= 0 && total != p.state.Total:
		return p.again("it has another version now")
	case total >= 0:
		p.state.Total = total
	}
	return nil
}

// again gives up what is here, to ask for all of it.
func (p *part) again(why string) error {
	if err := p.truncate(); err != nil {
		return permanent{err}
	}
	return fmt.Errorf("the server cannot go on from here: %s", why)
}

// contentRange reads "bytes 5-9/10" and "bytes */10"; total is -1 for "*".
func contentRange(resp *http.Response) (start, total int64, ok bool) {
	span, size, found := strings.Cut(strings.TrimPrefix(resp.Header.Get("Content-Range"), "bytes "), "/")
	total, err := strconv.ParseInt(size, 10, 64)
	if size == "*" {
		total, err = -1, nil
	}
	if !found || err != nil || total < -1 {
		return 0, 0, false
	}
	if span == "*" {
		return 0, total, total >= 0
	}
	first, _, _ := strings.Cut(span, "-")
	start, err = strconv.ParseInt(first, 10, 64)
	return start, total, err == nil && start >= 0
}

// ended sees that the server's end is the file's.
func (p *part) ended() error {
	switch {
	case p.state.Total < 0:
		p.state.Total = p.size
		return nil
	case p.size < p.state.Total:
		return fmt.Errorf("the connection broke: %w", io.ErrUnexpectedEOF)
	case p.size > p.state.Total:
		return p.again("it sent more than the file has")
	}
	return nil
}

// finish compares the checksum and puts the file in its place.
func (p *part) finish(r Request) (Result, error) {
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return Result{}, err
	}
	sum, n, err := digest(p.file)
	if err != nil {
		return Result{}, err
	}
	if !r.fits(sum) {
		return Result{}, errors.Join(fmt.Errorf("%w: want %s, got %s (%d bytes; what came is removed)", ErrChecksum, r.SHA256, sum, n),
			p.file.Close(), os.Remove(p.path), os.Remove(p.statePath()))
	}
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return Result{}, err
	}
	if err := os.Rename(p.path, r.Path); err != nil {
		return Result{}, err
	}
	if err := errors.Join(os.Remove(p.statePath()), syncFolder(filepath.Dir(r.Path))); err != nil {
		return Result{}, err
	}
	return Result{SHA256: sum, Bytes: n, Kept: p.kept}, nil
}
