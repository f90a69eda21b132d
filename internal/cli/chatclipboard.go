package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// Ctrl-V in the chat takes a picture from the clipboard of the desktop. A terminal only pastes text, so a program of
// the desktop is asked. The picture is written to a file of the conversation, and the input gets a mention of it.

const (
	maxClip  = 20 << 20 // bytes, as of the files of a question
	clipTime = 5 * time.Second
)

// clipboards are the programs that write a picture of the clipboard to stdout as PNG, with the variable that says that
// their display is there. The first that is on PATH is used.
var clipboards = []struct {
	system  string // GOOS, or "" for all but macOS
	display string
	words   []string
	install string // names the package in messages
}{
	{"", "WAYLAND_DISPLAY", []string{"wl-paste", "--no-newline", "--type", "image/png"}, "wl-clipboard"},
	{"", "DISPLAY", []string{"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}, "xclip"},
	{"darwin", "", []string{"pngpaste", "-"}, ""},
	{"darwin", "", []string{"osascript", "-e", "get the clipboard as «class PNGf»"}, ""},
}

// clips keeps the pictures of a conversation until its end.
type clips struct {
	a   *app
	dir string // made for the first picture
	n   int
}

// close removes the pictures.
func (c *clips) close() {
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // the system clears its temporary folder otherwise
	}
}

// take writes the picture in the clipboard to a file and returns a mention of it. Errors: not_found (no picture, or no
// program that reads it), too_large, timeout, store.
func (c *clips) take(ctx context.Context) (string, error) {
	picture, err := c.read(ctx)
	if err != nil {
		return "", err
	}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "tenon-chat-"); err != nil { // with mode 0700
			return "", tenon.Errorf(tenon.CodeStore, "the picture cannot be kept: %w", err)
		}
	}
	c.n++
	path := filepath.Join(c.dir, "clipboard-"+strconv.Itoa(c.n)+".png")
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "the picture cannot be kept: %w", err)
	}
	if strings.ContainsAny(path, " \t") {
		path = `"` + path + `"`
	}
	return "@" + path + " ", nil
}

// read returns the picture in the clipboard as PNG.
func (c *clips) read(ctx context.Context) ([]byte, error) {
	var missing []string
	found := false
	for _, b := range clipboards {
		if (b.system == "darwin") != (runtime.GOOS == "darwin") {
			continue
		}
		if v, _ := c.a.lookupEnv(b.display); b.display != "" && v == "" {
			continue
		}
		path, err := exec.LookPath(b.words[0])
		if err != nil {
			if b.install != "" {
				missing = append(missing, b.install)
			}
			continue
		}
		found = true
		picture, err := clipped(ctx, path, b.words[1:])
		if err != nil || len(picture) > 0 {
			return picture, err
		}
	}
	switch {
	case found:
		return nil, tenon.Errorf(tenon.CodeNotFound, "the clipboard has no picture; the terminal pastes text with its "+
			"own key, often Ctrl-Shift-V")
	case len(missing) > 0:
		return nil, tenon.Errorf(tenon.CodeNotFound, "no program reads pictures from the clipboard: install %s, or "+
			"write @FILE", strings.Join(missing, " or "))
	}
	return nil, tenon.Errorf(tenon.CodeNotFound, "no clipboard is reachable from here, for example over ssh: "+
		"write @FILE, or drop the picture on the terminal")
}

// clipped runs a program and returns the PNG that it writes. It returns nil if the clipboard has no picture, which each
// program says in another way.
func clipped(ctx context.Context, path string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clipTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second // a child of the program may hold the pipe open
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "%s cannot be started: %w", path, err)
	}
	b, rerr := io.ReadAll(io.LimitReader(out, 2*maxClip+64)) // osascript writes hexadecimal digits
	if rerr == nil && len(b) == 2*maxClip+64 {
		cancel() // it would wait for a reader
	}
	werr := cmd.Wait()
	if picture, ok := unhexed(b); ok {
		b = picture
	}
	switch {
	case len(b) > maxClip:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "the picture in the clipboard has more than %d MiB", maxClip>>20)
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, tenon.Errorf(tenon.CodeTimeout, "%s gave no picture within %s", filepath.Base(path), clipTime)
	case rerr != nil, werr != nil, http.DetectContentType(b) != "image/png":
		return nil, nil
	}
	return b, nil
}

// unhexed decodes the form in which AppleScript prints a picture: «data PNGf89504E…».
func unhexed(b []byte) ([]byte, bool) {
	digits, ok := bytes.CutPrefix(bytes.TrimSpace(b), []byte("«data PNGf"))
	if !ok {
		return nil, false
	}
	out := make([]byte, hex.DecodedLen(len(digits)))
	n, _ := hex.Decode(out, bytes.TrimSuffix(digits, []byte("»"))) // a cut picture is refused by its size
	return out[:n], true
}
