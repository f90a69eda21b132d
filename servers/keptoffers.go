package servers

import (
	"crypto/hmac"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon/mcp"
)

// The lists of prompts and resources are kept between processes like the tools, so that a server that hangs delays no
// list of them. They are shown to people only: clients of the gateway, and commands that use a prompt, ask the server.

// offersFile is the content of the file of one list. Items are texts, because JSON encoders change raw members, and the
// MAC covers each byte.
type offersFile struct {
	Key      string    `json:"key"` // key of the configuration to which the list belongs
	Identity string    `json:"identity,omitempty"`
	Listed   time.Time `json:"listed"`
	MAC      []byte    `json:"mac,omitempty"` // MAC of the whole entry; see [Options]
	Items    []string  `json:"items"`         // the definitions, as they came
}

// seal returns the MAC of the list, or nil if mac is nil.
func (f *offersFile) seal(what string, mac func(...[]byte) []byte) []byte {
	if mac == nil {
		return nil
	}
	parts := make([][]byte, 0, 4+len(f.Items))
	for _, s := range []string{what, f.Key, f.Identity, f.Listed.Format(time.RFC3339Nano)} {
		parts = append(parts, []byte(s))
	}
	for _, item := range f.Items {
		parts = append(parts, []byte(item))
	}
	return mac(parts...)
}

// offersPath returns the file of a list: "prompts" or "resources". No file of another kind ends so.
func (s *Server) offersPath(what string) string { return filepath.Join(s.opts.Cache, s.name+"."+what) }

// keepOffers writes a list that the server has just sent. A list that is too large is not kept.
func (s *Server) keepOffers(what string, items []listMember) {
	if s.opts.Cache == "" {
		return
	}
	f := &offersFile{Key: s.cfg.key(), Identity: s.identity(), Listed: time.Now().UTC(),
		Items: make([]string, len(items))}
	for i, item := range items {
		f.Items[i] = string(item.raw)
	}
	f.MAC = f.seal(what, s.opts.Seal)
	if err := f.store(s.offersPath(what)); err != nil {
		s.log.Debug("the list is not kept", "list", what, "error", err.Error()) // the next process lists again
	}
}

// store replaces the file as a whole, or removes it if the list is too large.
func (f *offersFile) store(path string) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if len(b) > maxCatalogue {
		return dropFile(path)
	}
	return replaceFile(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// recallOffers reads a list that was kept. It returns false if there is none for this configuration and identity.
func (s *Server) recallOffers(what string) (*offersFile, bool) {
	if s.opts.Cache == "" {
		return nil, false
	}
	st, err := os.Stat(s.offersPath(what))
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxCatalogue {
		return nil, false
	}
	b, err := os.ReadFile(s.offersPath(what))
	if err != nil {
		return nil, false
	}
	f := &offersFile{}
	if json.Unmarshal(b, f) != nil || f.Key != s.cfg.key() || f.Identity != s.identity() {
		return nil, false // the configuration, a script or a secret has changed: this may be a different server
	}
	if want := f.seal(what, s.opts.Seal); want != nil && !hmac.Equal(f.MAC, want) {
		return nil, false // written by somebody else
	}
	return f, true
}

// StoredPrompts returns the prompts that the server listed last, in this process or an earlier one, and when; also if
// the server is connected. It returns false if no list is known. It does not start or contact the server. The time is
// zero if the configuration loads no prompts.
func (s *Server) StoredPrompts() ([]mcp.Prompt, time.Time, bool) {
	if !s.cfg.LoadsPrompts() {
		return nil, time.Time{}, true
	}
	return stored(s, "prompts", &s.prompts, parsePrompt)
}

// StoredResources returns the resources and templates that the server listed last, in the way of
// [Server.StoredPrompts].
func (s *Server) StoredResources() ([]mcp.Resource, time.Time, bool) {
	return stored(s, "resources", &s.resources, parseResource)
}

// RememberedPrompts returns the prompts of the last listing and when they were listed, if the configuration allows the
// use of what an earlier process listed. It returns false if there is no listing, or if the server is connected: then
// [Server.Prompts] does not wait for a start. It does not start or contact the server.
func (s *Server) RememberedPrompts() ([]mcp.Prompt, time.Time, bool) {
	if !s.cfg.LoadsPrompts() {
		return nil, time.Time{}, false
	}
	return remembered(s, "prompts", &s.prompts, parsePrompt)
}

func parsePrompt(raw []byte) (p mcp.Prompt, ok bool) {
	p.Raw = raw
	return p, json.Unmarshal(raw, &p) == nil && p.Name != ""
}

// RememberedResources returns the resources and templates of the last listing, in the way of
// [Server.RememberedPrompts].
func (s *Server) RememberedResources() ([]mcp.Resource, time.Time, bool) {
	return remembered(s, "resources", &s.resources, parseResource)
}

func parseResource(raw []byte) (r mcp.Resource, ok bool) {
	r.Raw = raw
	return r, json.Unmarshal(raw, &r) == nil && (r.URI == "") != (r.Template == "")
}

// remembered returns a list of this process whose connection was lost, or of an earlier process.
func remembered[T any](s *Server, what string, k *kept[T], read func(raw []byte) (T, bool)) ([]T, time.Time, bool) {
	if !s.mayRemember() {
		return nil, time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || s.closed {
		return nil, time.Time{}, false
	}
	return storedLocked(s, what, k, read)
}

// stored returns the last list of this process, or of an earlier one.
func stored[T any](s *Server, what string, k *kept[T], read func(raw []byte) (T, bool)) ([]T, time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !k.told && !s.mayRemember() {
		return nil, time.Time{}, false
	}
	return storedLocked(s, what, k, read)
}

// storedLocked does the work of stored. The lock is held.
func storedLocked[T any](s *Server, what string, k *kept[T], read func(raw []byte) (T, bool)) ([]T, time.Time, bool) {
	if k.told {
		return k.items, k.at, true
	}
	f, ok := s.recallOffers(what)
	if !ok {
		return nil, time.Time{}, false
	}
	items := make([]T, len(f.Items))
	for i, raw := range f.Items {
		if items[i], ok = read([]byte(raw)); !ok {
			return nil, time.Time{}, false
		}
	}
	return items, f.Listed, true
}

// listTime is the time in which a server has to answer a request for a list, if others wait for it.
const listTime = 15 * time.Second

// ListTime is the time for which a list of several servers waits for this one, so that a server that hangs does not
// hold up the others: 15 seconds, and the time of a start if it is not connected.
func (s *Server) ListTime() time.Duration {
	switch s.Status().State {
	case StateReady, StateDegraded:
		return listTime
	}
	return listTime + s.cfg.Timeout
}
