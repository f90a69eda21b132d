package servers

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/deepstack"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// catalogue is a server's list of tools that is kept between processes, so that the tools are available before the
// server has been started. In the file it is one JSON object: these members, and then "tools" with the definitions,
// byte for byte as they were received.
type catalogue struct {
	Key      string    `json:"key"` // key of the configuration to which the list belongs
	Identity string    `json:"identity,omitempty"`
	Listed   time.Time `json:"listed"`
	Protocol string    `json:"protocol,omitempty"`
	Found    string    `json:"found,omitempty"`
	Server   string    `json:"server,omitempty"`
	MAC      []byte    `json:"mac,omitempty"` // MAC of the whole entry; see [Options]
	tools    []tenon.Tool
}

// seal returns the MAC of the catalogue, or nil if mac is nil.
func (c *catalogue) seal(mac func(...[]byte) []byte) []byte {
	if mac == nil {
		return nil
	}
	parts := make([][]byte, 0, 6+len(c.tools))
	for _, s := range []string{c.Key, c.Identity, c.Listed.Format(time.RFC3339Nano), c.Protocol, c.Found, c.Server} {
		parts = append(parts, []byte(s))
	}
	for i := range c.tools {
		parts = append(parts, c.tools[i].Raw)
	}
	return mac(parts...)
}

// maxCatalogue bounds the file. A longer list is not kept, and is requested again each time.
const maxCatalogue = 8 << 20

// store replaces the file as a whole.
func (c *catalogue) store(path string) error {
	head, err := json.Marshal(c)
	if err != nil {
		return err
	}
	head = append(head[:len(head)-1], `,"tools":[`...)
	size := len(head) + len("]}")
	for i := range c.tools {
		size += len(c.tools[i].Raw) + len(",")
	}
	if size > maxCatalogue {
		return dropFile(path)
	}
	return replaceFile(path, func(f io.Writer) error { return c.write(f, head) })
}

// dropFile removes a list that is too large to be kept, because a later process would use the older one.
func dropFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// replaceFile writes a file as a whole.
func replaceFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp")
	if err != nil {
		return err
	}
	err = write(f)
	e := f.Close()
	if err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// write writes head and then the tools. The tools were checked when they were read.
func (c *catalogue) write(f io.Writer, head []byte) error {
	w := bufio.NewWriterSize(f, 64<<10) // it keeps its first error until Flush
	_, _ = w.Write(head)
	for i := range c.tools {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(c.tools[i].Raw)
	}
	_, _ = w.WriteString("]}")
	return w.Flush()
}

// readCatalogue parses a catalogue file; the tools refer to its bytes. It returns false if b is not a catalogue.
func readCatalogue(b []byte) (*catalogue, bool) {
	if jsonrpc.Valid(b) != nil {
		return nil, false
	}
	c := &catalogue{}
	var raws [][]byte
	head := []byte{'{'}
	listed := rawjson.List(b, "tools", func(v []byte) bool { raws = append(raws, v[:len(v):len(v)]); return true },
		func(k, v []byte) {
			if len(head) > 1 {
				head = append(head, ',')
			}
			name, _ := json.Marshal(string(k)) // a string can always be encoded
			head = append(append(append(head, name...), ':'), v...)
		})
	if !listed || json.Unmarshal(append(head, '}'), c) != nil {
		return nil, false
	}
	var errs []error
	c.tools, errs = mcp.ParseTools(raws)
	return c, !slices.ContainsFunc(errs, func(err error) bool { return err != nil })
}

// key returns a digest that differs between configurations whose tools may differ. It is a digest, because it
// contains values that may be secret.
func (c Config) key() string {
	list := []any{c.Transport, c.Protocol, c.Command, c.Args, c.Cwd, c.Env, c.EnvFile, c.Encoding, c.URL,
		c.Headers, c.Auth.Type, c.Auth.Header, c.Settings}
	b, err := json.Marshal(list)
	if err != nil { // settings of a Go program that are not JSON
		b = fmt.Appendf(nil, "%q", list)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// listing returns a key that differs between configurations whose lists of tools may differ.
func (c Config) listing() string {
	key := c.key()
	if c.PromptsAsTools {
		key += "+prompts"
	}
	if c.ResourcesAsTools {
		key += "+resources"
	}
	return key
}

// identity returns the server's identity in the form in which it is stored: as a MAC if there is a key, because the
// identity contains secrets.
func (s *Server) identity() string {
	if s.opts.Seal != nil && s.opts.Identity != "" {
		if mac := s.opts.Seal([]byte("identity"), []byte(s.opts.Identity)); mac != nil {
			return hex.EncodeToString(mac)
		}
	}
	return s.opts.Identity
}

// Access returns a digest of how the server is reached: servers with the same digest reach the same remote server
// with the same credentials. It reveals none of them.
func (s *Server) Access() string { return s.access() }

func (s *Server) cacheFile() string { return filepath.Join(s.opts.Cache, s.name+".json") }

// load reads the kept catalogue. It returns false if there is none for this configuration.
func (s *Server) load() bool {
	if s.opts.Cache == "" {
		return false
	}
	st, err := os.Stat(s.cacheFile())
	if err != nil || st.Size() > maxCatalogue {
		return false
	}
	b, err := os.ReadFile(s.cacheFile())
	if err != nil {
		return false
	}
	c, ok := readCatalogue(b)
	if !ok || c.Key == "" || c.Key != s.cfg.listing() {
		return false // the file or the configuration was changed
	}
	if want := c.seal(s.opts.Seal); want != nil && !hmac.Equal(c.MAC, want) {
		return false // written by somebody else, or by an older tenon
	}
	s.named = c.tools
	if c.Identity != s.identity() {
		return false // a script or a secret has changed, for example: this may be a different server
	}
	s.kept = c.tools
	s.protocol = cmp.Or(s.protocol, c.Protocol)
	s.found = cmp.Or(s.found, c.Found)
	s.status.Protocol, s.status.Server, s.status.Found = c.Protocol, c.Server, c.Found
	s.status.Tools, s.status.Cached = len(c.tools), c.Listed
	return true
}

// keep remembers the listed tools and starts writing them to the cache. It reports whether the tools kept before came
// from an earlier process and differ. The caller holds the lock.
func (s *Server) keep(tools []tenon.Tool) (changed bool) {
	if s.kept != nil && !sameTools(s.kept, tools) {
		changed = s.loaded
		s.tellChanges("tools", membersOf(s.kept, toolMember), membersOf(tools, toolMember))
	}
	s.kept = tools
	if s.opts.Cache == "" {
		return changed
	}
	s.unwritten = &catalogue{Key: s.cfg.listing(), Identity: s.identity(), Listed: time.Now().UTC(),
		Protocol: s.protocol, Found: s.found, Server: s.status.Server, tools: tools}
	if !s.writing { // otherwise the running writeDown writes this list next
		s.writing = true
		s.wg.Go(s.writeDown)
	}
	return changed
}

// writeDown writes lists of tools to the cache in the background, so that callers do not wait; only [Server.Close]
// does. If several lists are waiting, it writes only the newest.
func (s *Server) writeDown() {
	deepstack.Work()
	for {
		s.mu.Lock()
		c := s.unwritten
		s.unwritten, s.writing = nil, c != nil
		s.mu.Unlock()
		if c == nil {
			return
		}
		c.MAC = c.seal(s.opts.Seal)
		if err := c.store(s.cacheFile()); err != nil {
			s.log.Debug("the list of tools is not kept", "error", err.Error()) // the next process lists again
		}
	}
}

func sameTools(a, b []tenon.Tool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i].Raw, b[i].Raw) {
			return false
		}
	}
	return true
}

// Remembered returns the tools of the last listing, by this process or an earlier one, if the configuration allows
// their use. It does not start or contact the server.
func (s *Server) Remembered() ([]tenon.Tool, bool) {
	if !s.mayRemember() {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || s.closed { // a server that is starting may hang
		return nil, false
	}
	if !s.loaded {
		s.loaded = s.load()
	}
	return s.kept, s.kept != nil
}

// mayRemember reports whether lists of an earlier process may be used.
func (s *Server) mayRemember() bool {
	return s.cfg.Discover == DiscoverCached && s.cfg.Lifecycle != LifecycleEager && !s.cfg.Required &&
		!s.opts.RefreshTools
}

// LastListed returns the tools of the last listing. The host needs them while the server is down, so that the exposed
// names of other servers' tools do not change. LastListed does not start or contact the server, and returns nil if no
// listing for this configuration is known. The scripts and secrets of the server may have changed since the listing.
func (s *Server) LastListed() []tenon.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil && !s.loaded && !s.closed && s.conn == nil {
		status, protocol, found := s.status, s.protocol, s.found
		s.loaded = s.load()
		s.status, s.protocol, s.found = status, protocol, found // the cached values do not describe the running server
	}
	if s.kept == nil {
		return s.named
	}
	return s.kept
}
