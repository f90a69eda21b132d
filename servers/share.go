package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// Pool holds the connections of servers whose entries have `share: true`: entries with equal settings use one
// connection. Each server keeps its own state, filters and rules. The zero value is ready to use. A Pool is safe for
// concurrent use.
type Pool struct {
	mu    sync.Mutex
	links map[string]*sharedLink // keyed by the digest of the settings
}

// sharedLink is one connection with the servers that use it.
type sharedLink struct {
	pool  *Pool
	key   string
	ready chan struct{} // closed when d or err is set
	d     *dialed
	err   error

	members []*Server // under the pool's lock
}

// listener receives a server's notifications, changed lists, health and lines on stderr.
type listener interface {
	notice(method string, params json.RawMessage)
	changed(list string)
	health(err error)
	said(line string) // on stderr
}

// sharing returns a digest of the settings that decide which connection is used: entries with the same digest share
// one. It is a digest, because the settings contain secrets.
func (c Config) sharing() string {
	b, err := json.Marshal([]any{c.key(), c.InheritEnv, c.Auth.Secret.Reveal(), c.Auth.ClientSecret.Reveal(),
		c.Auth.PrivateKey.Reveal(), c.Auth.Assertion.Reveal(), c.Auth.KeyID, c.Auth.Grant, c.Auth.ClientID,
		c.Auth.Scopes, c.Auth.Issuer, c.SSEReadTimeout, c.TerminateOnClose, c.LogLevel, c.Timeout, c.RequestTimeout,
		c.Elicitation, c.Sampling, c.SamplingModel, c.SamplingLimits, c.Roots, c.ClientRoots})
	if err != nil {
		return "" // cannot happen: strings, numbers and lists of them
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// dial returns the connection for a server's settings, and makes it if there is none.
func (p *Pool) dial(ctx context.Context, s *Server, cfg Config) (*dialed, error) {
	key := cfg.sharing()
	for {
		p.mu.Lock()
		l := p.links[key]
		if l == nil {
			l = &sharedLink{pool: p, key: key, ready: make(chan struct{}), members: []*Server{s}}
			if p.links == nil {
				p.links = map[string]*sharedLink{}
			}
			p.links[key] = l
			p.mu.Unlock()
			return l.make(ctx, s, cfg)
		}
		p.mu.Unlock()
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err != nil {
			if errors.Is(l.err, context.Canceled) { // the server that was connecting was closed
				continue
			}
			return nil, l.err
		}
		p.mu.Lock()
		if l.d.conn.Err() != nil { // set before Done is closed, so a server that noticed the loss can arrive here first
			l.drop()
		}
		if p.links[key] == l {
			l.members = append(l.members, s)
			p.mu.Unlock()
			s.mu.Lock()
			s.protocol, s.found, s.status.Found = l.d.protocol, l.d.found, l.d.found
			s.mu.Unlock()
			return l.use(s), nil
		}
		p.mu.Unlock()
	}
}

// make connects on behalf of the first member.
func (l *sharedLink) make(ctx context.Context, s *Server, cfg Config) (*dialed, error) {
	d, err := s.dialAs(ctx, cfg, l)
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.d, l.err = d, err
	if err != nil {
		l.drop()
	}
	close(l.ready)
	if err != nil {
		return nil, err
	}
	return l.use(s), nil
}

// drop prevents further servers from joining. The caller holds the pool's lock.
func (l *sharedLink) drop() {
	if l.pool.links[l.key] == l {
		delete(l.pool.links, l.key)
	}
}

// use returns the shared connection for one member. When the member closes it, it stays open for the others.
func (l *sharedLink) use(s *Server) *dialed {
	d := *l.d
	m := &member{l: l, s: s}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.used, m.leaves = context.WithCancel(context.Background())
	m.stop = l.d.conn.AfterEnd(m.cancel)
	d.conn = m
	return &d
}

// everybody returns the current members.
func (l *sharedLink) everybody() []*Server {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return slices.Clone(l.members)
}

func (l *sharedLink) notice(method string, params json.RawMessage) {
	for _, s := range l.everybody() {
		s.notice(method, params)
	}
}

func (l *sharedLink) changed(list string) {
	for _, s := range l.everybody() {
		s.changed(list)
	}
}

func (l *sharedLink) health(err error) {
	for _, s := range l.everybody() {
		s.health(err)
	}
}

func (l *sharedLink) said(line string) {
	for _, s := range l.everybody() {
		s.said(line)
	}
}

// member is a shared connection as seen by one server.
type member struct {
	l      *sharedLink
	s      *Server
	once   sync.Once
	ctx    context.Context // ends with the connection, or when the member closes
	cancel context.CancelFunc
	stop   func() bool     // ends the wait for the connection's end
	used   context.Context // ends when the member leaves and the connection stays open
	leaves context.CancelFunc
}

// Close leaves the connection. The last member that leaves closes it.
func (m *member) Close() (err error) {
	m.once.Do(func() {
		l := m.l
		m.stop()
		m.cancel()
		if l.d.conn.Err() == nil { // otherwise the connection reports its end and the outcome of the calls
			m.leaves()
		}
		l.pool.mu.Lock()
		if i := slices.Index(l.members, m.s); i >= 0 {
			l.members = slices.Delete(l.members, i, i+1)
		}
		last := len(l.members) == 0
		if last {
			l.drop()
		}
		l.pool.mu.Unlock()
		if last {
			err = l.d.conn.Close()
		}
	})
	return err
}

// leave makes the next caller open a separate connection.
func (m *member) leave() {
	m.l.pool.mu.Lock()
	m.l.drop()
	m.l.pool.mu.Unlock()
}

func (m *member) Done() <-chan struct{} { return m.ctx.Done() }

func (m *member) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(m.ctx, f) }

func (m *member) Err() error {
	if err := m.l.d.conn.Err(); err != nil || m.ctx.Err() == nil {
		return err
	}
	return io.EOF
}

// with returns a context that also ends when the member closes.
func (m *member) with(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	closed, left := context.AfterFunc(m.s.ctx, cancel), context.AfterFunc(m.used, cancel)
	return ctx, func() { closed(); left(); cancel() }
}

func (m *member) Fresh(method string) time.Duration { return m.l.d.conn.Fresh(method) }

func (m *member) Hint(method string) mcp.Hint { return m.l.d.conn.Hint(method) }

func (m *member) Settle() { m.l.d.conn.Settle() }

func (m *member) Tools(ctx context.Context) ([]tenon.Tool, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Tools(ctx)
}

func (m *member) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Call(ctx, c)
}

func (m *member) Prompts(ctx context.Context) ([]mcp.Prompt, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Prompts(ctx)
}

func (m *member) Resources(ctx context.Context) ([]mcp.Resource, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Resources(ctx)
}

func (m *member) Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Prompt(ctx, name, args)
}

func (m *member) Read(ctx context.Context, uri string) ([]tenon.Content, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Read(ctx, uri)
}

func (m *member) Complete(ctx context.Context, r mcp.CompletionRequest) (mcp.Completion, error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Complete(ctx, r)
}

func (m *member) Watch(ctx context.Context, uri string, begun func(), updated func(string)) error {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Watch(ctx, uri, begun, updated)
}

var (
	_ listener   = (*Server)(nil)
	_ listener   = (*sharedLink)(nil)
	_ connection = (*member)(nil)
)
