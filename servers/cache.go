package servers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// catalogue is what is kept of a server between processes, so that its tools are
// there before it has been started.
type catalogue struct {
	Key      string            `json:"key"` // of the configuration it belongs to
	Listed   time.Time         `json:"listed"`
	Protocol string            `json:"protocol,omitempty"`
	Found    string            `json:"found,omitempty"`
	Server   string            `json:"server,omitempty"`
	Tools    []json.RawMessage `json:"tools"` // definitions, as they came
}

// encode writes the catalogue with these tools, byte for byte as they came: they were
// checked when they were read.
func (c catalogue) encode(tools []tenon.Tool) ([]byte, error) {
	head, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	size := len(head)
	for i := range tools {
		size += len(tools[i].Raw) + 1
	}
	b := append(make([]byte, 0, size), bytes.TrimSuffix(head, []byte("null}"))...)
	for i := range tools {
		b = append(append(b, "[,"[min(i, 1)]), tools[i].Raw...)
	}
	if len(tools) == 0 {
		b = append(b, '[')
	}
	return append(b, "]}"...), nil
}

// maxCatalogue bounds the file; a server with more is asked each time.
const maxCatalogue = 8 << 20

// key tells the configurations apart whose tools may differ. It is a digest,
// because it is made of values that may be secret.
func (c Config) key() string {
	b, err := json.Marshal([]any{c.Transport, c.Protocol, c.Command, c.Args, c.Cwd, c.Env, c.EnvFile, c.Encoding, c.URL, c.Headers, c.Auth.Type, c.Auth.Header, c.Settings})
	if err != nil {
		return "" // cannot be: all of it is text
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// listing tells the configurations apart that differ in what they list.
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

// Access identifies the way to the server as it is configured: what is asked of
// servers of the same access reaches the same one, with the same credentials. It
// tells nothing of them.
func (s *Server) Access() string { return s.access() }

func (s *Server) cacheFile() string { return filepath.Join(s.opts.Cache, s.name+".json") }

// load reads the kept catalogue. It reports false where there is none for this
// configuration.
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
	var c catalogue
	if json.Unmarshal(b, &c) != nil || c.Key == "" || c.Key != s.cfg.listing() {
		return false
	}
	tools := make([]tenon.Tool, 0, len(c.Tools))
	for _, raw := range c.Tools {
		t, err := mcp.ParseTool(raw)
		if err != nil {
			return false // somebody changed it
		}
		tools = append(tools, t)
	}
	s.kept = tools
	if s.protocol == "" {
		s.protocol = c.Protocol
	}
	if s.found == "" {
		s.found = c.Found
	}
	s.status.Protocol, s.status.Server, s.status.Found = c.Protocol, c.Server, c.Found
	s.status.Tools, s.status.Cached = len(tools), c.Listed
	return true
}

// keep stores the tools that were listed, and reports whether they differ from
// those that were kept before. The caller holds the lock.
func (s *Server) keep(tools []tenon.Tool) (changed bool) {
	if s.kept != nil && !sameTools(s.kept, tools) {
		changed = s.loaded
		s.tellChanges("tools", membersOf(s.kept, toolMember), membersOf(tools, toolMember))
	}
	s.kept = tools
	if s.opts.Cache == "" {
		return changed
	}
	b, err := catalogue{Key: s.cfg.listing(), Listed: time.Now().UTC(), Protocol: s.protocol, Found: s.found, Server: s.status.Server}.encode(tools)
	if err != nil || len(b) > maxCatalogue {
		return changed
	}
	if err := writeFile(s.cacheFile(), b); err != nil {
		s.log.Debug("the list of tools is not kept", "error", err.Error()) // it is asked for again the next time
	}
	return changed
}

// writeFile replaces a file as a whole.
func writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
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

// Remembered returns the tools that are known without asking the server: those of
// the last listing, by this process or an earlier one, where the configuration
// allows it. It starts nothing.
func (s *Server) Remembered() ([]tenon.Tool, bool) {
	if s.cfg.Discover != DiscoverCached || s.cfg.Lifecycle == LifecycleEager || s.cfg.Required || s.opts.Live {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || s.dialed != nil || s.closed {
		return nil, false
	}
	if !s.loaded {
		s.loaded = s.load()
	}
	return s.kept, s.kept != nil
}
