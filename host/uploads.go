package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/filelock"
	"github.com/tenonhq/tenon/model"
)

// Large files of a conversation are uploaded to the model's provider once per process, so that the requests of further
// turns contain only their ids. The journal keeps the bytes. Therefore a file that the provider has deleted is uploaded
// again, and any other model can continue the conversation.
//
// Uploaded files are deleted when the host is closed, or when they are old. A file next to the store lists them. A
// record is written before its upload begins, so that another process can delete the file after a crash.

// The bounds of uploads.
const (
	uploadMin    = 256 << 10       // bytes of base64 of a file that models.NAME.uploads: always uploads
	maxStored    = 256             // files that a process has uploaded and not deleted
	uploadsFile  = "uploads.jsonl" // next to the store
	maxRecords   = 1 << 20         // bytes of the list that are read
	uploadLife   = 20 * time.Hour  // how long requests name a file
	uploadOrphan = 24 * time.Hour  // age at which another process deletes a file
)

// uploaded is a record of the list.
type uploaded struct {
	Model   string    `json:"model"` // its name in this configuration
	Name    string    `json:"name"`  // of the file at the provider
	ID      string    `json:"id,omitempty"`
	Time    time.Time `json:"time"`
	Deleted bool      `json:"deleted,omitempty"`
}

// sentMessage replaces a message in requests to a model. It is the same in all of them, so that it is encoded once.
type sentMessage struct {
	model   string
	message *tenon.Message
	time    time.Time
}

// uploads are the files that this process has uploaded.
type uploads struct {
	h    *Host
	mu   sync.Mutex
	byID map[string]*uploaded // by model and digest of the data
	sent map[*tenon.Message]sentMessage
	once sync.Once
}

// upload is executor.Model's Upload of a model.
func (u *uploads) upload(ctx context.Context, c model.Config, open func() (*model.Files, error), req *tenon.Request) (
	*tenon.Request, []string) {
	large := uploadable(c, req)
	if len(large) == 0 {
		return req, nil
	}
	u.once.Do(func() { u.sweep(ctx) })
	files, err := open()
	if err != nil {
		return req, []string{"files are sent as part of the request: " + err.Error()}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	out := *req
	out.Messages = append([]*tenon.Message(nil), req.Messages...)
	var warnings []string
	for i, m := range req.Messages {
		if !large[m] {
			continue
		}
		if s := u.sent[m]; s.model == c.Name && u.h.now().Sub(s.time) < uploadLife/2 {
			out.Messages[i] = s.message
			continue
		}
		done, err := u.message(ctx, c, files, m)
		if err != nil {
			warnings = append(warnings, "a file is sent as part of the request, because it was not uploaded: "+
				err.Error())
			continue
		}
		out.Messages[i] = done
		if u.sent == nil || len(u.sent) > maxStored {
			u.sent = map[*tenon.Message]sentMessage{}
		}
		u.sent[m] = sentMessage{c.Name, done, u.h.now()}
	}
	return &out, warnings
}

// uploadable returns the messages with files to upload. Without files, or if the request is not too large for the
// provider, there are none.
func uploadable(c model.Config, req *tenon.Request) map[*tenon.Message]bool {
	least := c.UploadMin()
	if least == 0 {
		return nil
	}
	large, total := map[*tenon.Message]bool{}, 0
	for _, m := range req.Messages {
		for i := range m.Parts {
			total += len(m.Parts[i].Data)
			if len(m.Parts[i].Data) >= uploadMin && m.Role == tenon.RoleUser && takesID(c, &m.Parts[i]) {
				large[m] = true
			}
		}
	}
	if total < least {
		return nil
	}
	return large
}

// takesID reports whether requests to a model can name a file by its id.
func takesID(c model.Config, p *tenon.Part) bool {
	block := model.ContentOf(p)
	block.Remote = "file-id:x"
	_, ok := c.Remote(block)
	return ok
}

// message returns a message whose large files are replaced by their ids.
func (u *uploads) message(ctx context.Context, c model.Config, files *model.Files, m *tenon.Message) (*tenon.Message,
	error) {
	out := &tenon.Message{Role: m.Role, By: m.By, Partial: m.Partial, Parts: append([]tenon.Part(nil), m.Parts...)}
	for i := range out.Parts {
		p := &out.Parts[i]
		if len(p.Data) < uploadMin || !takesID(c, p) {
			continue
		}
		id, err := u.file(ctx, c, files, p)
		if err != nil {
			return nil, err
		}
		p.Data, p.URI = "", "file-id:"+id
	}
	return out, nil
}

// file uploads the data of a part, unless this process has done so.
func (u *uploads) file(ctx context.Context, c model.Config, files *model.Files, p *tenon.Part) (string, error) {
	digest := sha256.Sum256([]byte(p.Data))
	key := c.Name + " " + string(digest[:])
	if r := u.byID[key]; r != nil {
		if u.h.now().Sub(r.Time) < uploadLife/2 { // the message is sent for the other half
			return r.ID, nil
		}
		_ = u.delete(ctx, r) // logged; the list has it
		delete(u.byID, key)
	}
	if len(u.byID) >= maxStored {
		return "", tenon.Errorf(tenon.CodeLimit, "this process has uploaded %d files", maxStored)
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "its data is not base64")
	}
	r := &uploaded{Model: c.Name, Name: "tenon-" + rand.Text() + extension(p.MimeType), Time: u.h.now()}
	if err := u.record(r); err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "the list of uploads cannot be written: %w", err)
	}
	if r.ID, err = files.Upload(ctx, r.Name, p.MimeType, data); err != nil {
		return "", err
	}
	if err := u.record(r); err != nil {
		u.h.log.Warn("the list of uploads cannot be written", "error", err.Error())
	}
	if u.byID == nil {
		u.byID = map[string]*uploaded{}
	}
	u.byID[key] = r
	u.h.log.Info("a file is uploaded to the provider", "model", c.Name, "id", r.ID, "bytes", len(data))
	return r.ID, nil
}

// extension returns the end of a file's name for a MIME type, or "".
func extension(kind string) string {
	for ext, k := range kinds {
		if k == strings.ToLower(kind) && ext != ".jpeg" && ext != ".mpg" {
			return ext
		}
	}
	return ""
}

// list returns the path of the list, or "" if this host keeps none.
func (u *uploads) list() string {
	path, _ := u.h.cfg.storePath()
	if path == "" || u.h.cfg.Untrusted || u.h.cfg.ReadOnly {
		return ""
	}
	return filepath.Join(filepath.Dir(path), uploadsFile)
}

// record appends a record to the list.
func (u *uploads) record(r *uploaded) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return u.locked(func(f *os.File) error {
		_, err := f.Write(append(afterTorn(f, nil), append(line, '\n')...))
		return errors.Join(err, f.Sync())
	})
}

// afterTorn appends a line break if the last line of a list is the beginning of a record, whose writer crashed.
func afterTorn(f *os.File, dst []byte) []byte {
	last := []byte{'\n'}
	st, err := f.Stat()
	if err == nil && st.Size() > 0 {
		_, err = f.ReadAt(last, st.Size()-1)
	}
	if err != nil || last[0] != '\n' {
		return append(dst, '\n')
	}
	return dst
}

// locked calls a function with the list, and keeps other processes from changing the list until it returns. It does
// nothing if there is no list.
func (u *uploads) locked(change func(f *os.File) error) error {
	path := u.list()
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	unlock, err := filelock.File(context.Background(), f)
	if err != nil {
		return err
	}
	defer unlock()
	return change(f)
}

// pending returns the records of a list whose files were not deleted, by name.
func pending(f io.Reader) map[string]*uploaded {
	left := map[string]*uploaded{}
	lines := bufio.NewScanner(io.LimitReader(f, maxRecords))
	for lines.Scan() {
		var r uploaded
		if json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &r) != nil || r.Name == "" {
			continue // a record whose writer crashed
		}
		if r.Deleted {
			delete(left, r.Name)
			continue
		}
		left[r.Name] = &r
	}
	return left
}

// tidy empties the list if it lists no file any more.
func (u *uploads) tidy() {
	err := u.locked(func(f *os.File) error {
		if len(pending(f)) > 0 {
			return nil
		}
		return f.Truncate(0)
	})
	if err != nil {
		u.h.log.Warn("the list of uploads cannot be shortened", "error", err.Error())
	}
}

// sweep deletes old files that no process has deleted.
func (u *uploads) sweep(ctx context.Context) {
	if _, err := os.Stat(u.list()); err != nil {
		return // nothing was uploaded
	}
	var left map[string]*uploaded
	if u.locked(func(f *os.File) error { left = pending(f); return nil }) != nil {
		return // the next process tries again
	}
	for _, r := range left {
		if u.h.now().Sub(r.Time) > uploadOrphan {
			_ = u.delete(ctx, r) // logged
		}
	}
	u.tidy()
}

// delete deletes a file at the provider, and records it.
func (u *uploads) delete(ctx context.Context, r *uploaded) error {
	files, err := u.h.models.files(ctx, r.Model)
	if err == nil && r.ID == "" {
		r.ID, err = files.Find(ctx, r.Name)
	}
	if err == nil && r.ID != "" {
		err = files.Delete(ctx, r.ID)
	}
	if err != nil {
		u.h.log.Warn("an uploaded file is not deleted at the provider", "model", r.Model, "id", r.ID,
			"error", err.Error())
		return err
	}
	gone := *r
	gone.Deleted = true
	return u.record(&gone)
}

// close deletes the files of this process.
func (u *uploads) close(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.byID) == 0 {
		return
	}
	for _, r := range u.byID {
		_ = u.delete(ctx, r) // logged; a later process tries again
	}
	u.byID = nil
	u.tidy()
}

// files opens the files of the provider of a model.
func (m *models) files(ctx context.Context, name string) (*model.Files, error) {
	c, err := m.config(ctx, name)
	if err != nil {
		return nil, err
	}
	return model.OpenFiles(c, model.Env{Transport: m.h.cassette.transport(), LookupEnv: m.h.cfg.LookupEnv,
		Key: m.keyAgain(c.Name)})
}
