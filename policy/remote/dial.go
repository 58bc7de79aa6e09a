package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// NewTransport is a transport of our own: it heeds HTTP_PROXY, HTTPS_PROXY and NO_PROXY, verifies certificates, and keeps so
// many connections open.
func NewTransport(parallel int) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, MaxIdleConns: parallel, MaxIdleConnsPerHost: parallel, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// NewClient is an HTTP client over a transport, which must verify certificates. It follows no redirect: that would carry
// the request, and the key, to an address that nobody chose.
func NewClient(t http.RoundTripper) (*http.Client, error) {
	if t, ok := t.(*http.Transport); ok && t.TLSClientConfig != nil && t.TLSClientConfig.InsecureSkipVerify {
		return nil, errors.New("the transport does not verify certificates: add the server's authority to its RootCAs instead")
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// Address reads a server's address. A key may not travel in clear text to another machine unless that is allowed.
func Address(text string, key, cleartext bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the server's address cannot be read: want one such as http://127.0.0.1:8000") // it may hold a key
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of %s has a user, a question mark or a fragment: give the key apart, and the bare address", u.Host)
	}
	if key && u.Scheme == "http" && !Local(u.Hostname()) && !cleartext {
		return nil, fmt.Errorf("the key would travel to %s in clear text: use https, or allow it", u.Host)
	}
	return u, nil
}

// Local says whether a host is this machine.
func Local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Exchange sends a request and reads the reply, of at most so many bytes, within a time. An answer that is no success is a
// *StatusError without the key. sent says, where it failed, that the server may have done the work.
func Exchange(ctx context.Context, c *http.Client, req *http.Request, key string, patience time.Duration, most int64) (reply []byte, header http.Header, sent bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no whole answer within %v", patience))
	defer cancel()
	resp, err := c.Do(req.WithContext(ctx))
	if err != nil {
		return nil, nil, !unsent(err), cause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, false, refusal(resp, key)
	}
	reply, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, nil, true, cause(ctx, err)
	case int64(len(reply)) > most:
		return nil, nil, true, Final(fmt.Errorf("the reply has more than %d bytes: ask for less, or raise the limit", most))
	}
	return reply, resp.Header, true, nil
}
