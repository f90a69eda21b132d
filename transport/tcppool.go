package transport

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tcpPool sends small requests in HTTP/1.1 over TCP, without TLS and without a proxy, in the goroutine of the caller.
// [http.Transport] passes each request to a goroutine that writes it, and another one reads the response. Waking them
// takes a large part of the time of a short call. All other requests go to the [http.Transport].
type tcpPool struct {
	base *http.Transport
	most int // idle connections

	mu     sync.Mutex
	closed bool                  // connections are not kept any more
	idle   map[string][]*tcpConn // by address; the last one was used last
	count  int                   // of idle connections
	reap   *time.Timer           // closes connections that were idle for too long; nil while there are none
}

const (
	// maxDirect is the size of a body, in bytes, that fits the buffers of a connection. The write of a larger body
	// could wait for a server that responds before it has read it.
	maxDirect = 16 << 10
	// maxInterim bounds the responses 1xx before a response, as in [http.Transport].
	maxInterim = 5
)

func newTCPPool(base *http.Transport, most int) *tcpPool {
	return &tcpPool{base: base, most: most, idle: map[string][]*tcpConn{}}
}

// RoundTrip implements [http.RoundTripper].
func (p *tcpPool) RoundTrip(r *http.Request) (*http.Response, error) {
	head, ok := p.head(r)
	if !ok {
		return p.base.RoundTrip(r)
	}
	ctx := r.Context()
	body, err := r.GetBody()
	if err == nil {
		if n := len(head); cap(head)-n >= int(r.ContentLength) {
			_, err = io.ReadFull(body, head[n:n+int(r.ContentLength)])
			head = head[:n+int(r.ContentLength)]
		} else {
			err = io.ErrShortBuffer
		}
	}
	_ = r.Body.Close() // like body, it is in memory
	if err != nil {
		return nil, err
	}
	for addr := address(r); ; {
		c, err := p.connection(ctx, addr)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		resp, unsent, err := c.exchange(r, head)
		if err == nil {
			return p.deliver(resp, c, ctx, stop), nil
		}
		stop()
		_ = c.Close() // err says more
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case unsent && c.reused: // the server had closed the connection
			continue
		}
		return nil, err
	}
}

// CloseIdleConnections closes the connections that no request uses. Connections in use are closed after their request.
func (p *tcpPool) CloseIdleConnections() {
	p.base.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, list := range p.idle {
		for _, c := range list {
			_ = c.Close() // it is of no use any more
		}
	}
	clear(p.idle)
	p.count = 0
	if p.reap != nil {
		p.reap.Stop()
	}
}

// head returns the encoded head of a request, with room for its body. It reports false for a request that the
// [http.Transport] must send, or refuse.
func (p *tcpPool) head(r *http.Request) ([]byte, bool) {
	if r.URL.Scheme != "http" || r.Method != http.MethodPost || r.GetBody == nil || r.ContentLength <= 0 ||
		r.ContentLength > maxDirect || r.Close || len(r.TransferEncoding)+len(r.Trailer) > 0 || !checksIdle ||
		httptrace.ContextClientTrace(r.Context()) != nil || !isPlainText(r.URL.Host, "%") || r.URL.Host == "" ||
		r.Host != "" && r.Host != r.URL.Host {
		return nil, false
	}
	if p.base.Proxy != nil {
		if u, err := p.base.Proxy(r); u != nil || err != nil {
			return nil, false
		}
	}
	b := make([]byte, 0, 1024+int(r.ContentLength))
	b = append(append(b, "POST "...), r.URL.RequestURI()...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), r.URL.Host...)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), r.ContentLength, 10)
	b = append(b, "\r\n"...)
	for name, values := range r.Header {
		switch name {
		case "Connection", "Content-Length", "Expect", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
			"Accept-Encoding", "Range":
			return nil, false
		}
		if name == "" || !isPlainText(name, " :()<>@,;\\\"/[]?={}") {
			return nil, false
		}
		for _, v := range values {
			if !isPlainText(v, "") {
				return nil, false
			}
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	if r.Header["User-Agent"] == nil {
		b = append(b, "User-Agent: Go-http-client/1.1\r\n"...)
	}
	b = append(b, "Accept-Encoding: gzip\r\n\r\n"...)
	if cap(b)-len(b) < int(r.ContentLength) {
		b = append(make([]byte, 0, len(b)+int(r.ContentLength)), b...)
	}
	return b, true
}

// isPlainText reports whether a text has printable ASCII only, and none of the characters of without.
func isPlainText(s, without string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return without == "" || !strings.ContainsAny(s, without)
}

// address returns the address of a request's server.
func address(r *http.Request) string {
	if r.URL.Port() == "" {
		return net.JoinHostPort(r.URL.Hostname(), "80")
	}
	return r.URL.Host
}

// connection returns an idle connection, or makes one.
func (p *tcpPool) connection(ctx context.Context, addr string) (*tcpConn, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c := p.take(addr)
		if c == nil {
			break
		}
		if c.isAlive() {
			c.reused = true
			return c, nil
		}
		_ = c.Close() // the server closed it
	}
	own, err := p.base.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &tcpConn{Conn: own, addr: addr, most: p.base.MaxResponseHeaderBytes}
	c.in = bufio.NewReader(c)
	return c, nil
}

func (p *tcpPool) take(addr string) *tcpConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[addr]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[addr] = list[:len(list)-1]
	p.count--
	return c
}

// put keeps a connection for the next request.
func (p *tcpPool) put(c *tcpConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count >= p.most {
		_ = c.Close() // it is of no use any more
		return
	}
	c.since = time.Now()
	p.idle[c.addr] = append(p.idle[c.addr], c)
	p.count++
	if p.reap == nil {
		p.reap = time.AfterFunc(p.base.IdleConnTimeout, p.expire)
	}
}

// expire closes the connections that were idle for too long.
func (p *tcpPool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reap = nil
	for addr, list := range p.idle {
		n := 0
		for n < len(list) && time.Since(list[n].since) >= p.base.IdleConnTimeout {
			_ = list[n].Close() // it is of no use any more
			n++
		}
		p.count -= n
		p.idle[addr] = append([]*tcpConn(nil), list[n:]...)
		if len(list) == n {
			delete(p.idle, addr)
		}
	}
	if p.count > 0 && !p.closed {
		p.reap = time.AfterFunc(p.base.IdleConnTimeout/4, p.expire)
	}
}

// deliver returns the response with a body that gives the connection back at its end.
func (p *tcpPool) deliver(resp *http.Response, c *tcpConn, ctx context.Context, stop func() bool) *http.Response {
	b := &tcpBody{in: resp.Body, pool: p, conn: c, ctx: ctx, stop: stop, keep: !resp.Close}
	if resp.Body == http.NoBody {
		b.end(true)
		return resp
	}
	resp.Body = b
	if resp.Header.Get("Content-Encoding") == "gzip" {
		resp.Body = &unzipped{tcpBody: b}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	return resp
}

// tcpConn is a connection for one request at a time.
type tcpConn struct {
	net.Conn
	addr   string
	in     *bufio.Reader // reads through Read
	most   int64         // bytes of the head of a response
	left   int64         // bytes that may still be read; negative: any number
	reused bool
	since  time.Time // since when it is idle
}

// errHead is the error of a response whose head is too large.
var errHead = errors.New("the head of the response is too large")

// Read implements [io.Reader]. It bounds the head of a response.
func (c *tcpConn) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, errHead
	}
	if c.left > 0 && int64(len(b)) > c.left {
		b = b[:c.left]
	}
	n, err := c.Conn.Read(b)
	if c.left > 0 {
		c.left -= int64(n)
	}
	return n, err
}

// exchange writes a request and reads the head of its response. If unsent is true, the server got nothing of the
// request.
func (c *tcpConn) exchange(r *http.Request, request []byte) (resp *http.Response, unsent bool, err error) {
	if n, err := c.Write(request); err != nil {
		return nil, n == 0, err
	}
	c.left = c.most
	for range maxInterim + 1 {
		if resp, err = http.ReadResponse(c.in, r); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) && c.in.Buffered() == 0 && c.left == c.most {
				err = io.EOF
			}
			return nil, false, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, false, errors.New("the server switched to a protocol that was not asked for")
		}
		if resp.StatusCode >= http.StatusOK {
			c.left = -1
			return resp, false, nil
		}
	}
	return nil, false, fmt.Errorf("the server sent more than %d responses before its response", maxInterim)
}

// tcpBody is the body of a response.
type tcpBody struct {
	in   io.Reader
	pool *tcpPool
	conn *tcpConn
	ctx  context.Context
	stop func() bool // ends the watch of the request's context
	keep bool        // the server keeps the connection
	once sync.Once
}

// Read implements [io.Reader].
func (b *tcpBody) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	switch {
	case err == io.EOF:
		b.end(true)
	case err != nil:
		b.end(false)
		if b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
		}
	}
	return n, err
}

// Close implements [io.Closer]. Before the end of the body, it closes the connection.
func (b *tcpBody) Close() error {
	b.end(false)
	return nil
}

// end gives the connection back if the body is complete, and closes it otherwise.
func (b *tcpBody) end(complete bool) {
	b.once.Do(func() {
		if watched := b.stop(); complete && watched && b.keep && b.conn.in.Buffered() == 0 {
			b.pool.put(b.conn)
			return
		}
		_ = b.conn.Close() // it is of no use any more
	})
}

// unzipped is a compressed body as the receiver reads it.
type unzipped struct {
	*tcpBody
	zip *gzip.Reader // nil before the first read
}

// Read implements [io.Reader].
func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.tcpBody); err != nil {
			u.zip = nil
			return 0, err
		}
	}
	return u.zip.Read(p)
}

var (
	_ http.RoundTripper = (*tcpPool)(nil)
	_ io.ReadCloser     = (*unzipped)(nil)
)
