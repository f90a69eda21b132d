package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/internal/tui"
)

// pastInputs are the inputs of earlier conversations, in a file of the user's state folder that nobody else can read.
// A problem with the file only means that there is no history.
type pastInputs struct {
	file string
	list []string
}

const (
	maxPast     = 1000      // inputs that are read
	maxPastFile = 4 << 20   // size of the file; a larger one is begun again with the last inputs
	maxPastText = 64 * 1024 // maximum size of a kept input
)

// chatHistory reads the inputs of earlier conversations.
func (a *app) chatHistory() *pastInputs {
	p := &pastInputs{}
	if dir := a.trustStore().Dir(); dir != "" {
		p.file = filepath.Join(filepath.Dir(dir), "chat-history.jsonl")
	}
	b, err := privatefile.Read(p.file, 2*maxPastFile)
	if p.file == "" || err != nil {
		return p
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 8*maxPastText)
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil && text != "" {
			p.list = append(p.list, text)
		}
	}
	p.list = slices.Clone(p.list[max(len(p.list)-maxPast, 0):])
	if len(b) > maxPastFile {
		_ = os.Remove(p.file)
		for _, text := range p.list {
			p.keep(text)
		}
	}
	return p
}

// keep adds an input to the file.
func (p *pastInputs) keep(text string) {
	line, err := json.Marshal(text)
	if p.file == "" || err != nil || len(text) > maxPastText || !utf8.ValidString(text) {
		return
	}
	if os.MkdirAll(filepath.Dir(p.file), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(p.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(line, '\n')) // a history that is not written is only missed
	_ = f.Close()
}

// maxFiles bounds the files of a completion.
const maxFiles = 200

// fileNames returns the files that complete a path, and folders with a slash at their end. Hidden files need their dot.
func fileNames(typed string) (list []string) {
	dir, base := filepath.Split(typed)
	entries, err := os.ReadDir(filepath.Clean("./" + dir))
	if filepath.IsAbs(dir) {
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && base == "" ||
			strings.ContainsAny(name, "\"\t\n") || name != tenon.Visible(name) {
			continue
		}
		if e.IsDir() {
			name += "/"
		} else {
			name += " "
		}
		if list = append(list, dir+name); len(list) == maxFiles {
			break
		}
	}
	return list
}

// mentionedFiles returns the names after the marks @ of a text. A name with blanks is in quotes: @"my notes.txt".
func mentionedFiles(text string) (list []string) {
	for i := 0; i < len(text); i++ {
		if text[i] != '@' || i > 0 && !strings.ContainsRune(" \t\n", rune(text[i-1])) {
			continue
		}
		rest := text[i+1:]
		if name, ok := strings.CutPrefix(rest, `"`); ok {
			if end := strings.IndexByte(name, '"'); end > 0 {
				list = append(list, name[:end])
			}
			continue
		}
		if end := strings.IndexAny(rest, " \t\n"); end >= 0 {
			rest = rest[:end]
		}
		if rest != "" {
			list = append(list, rest)
		}
	}
	return list
}

// attachFiles adds the files that a question names, and prints the name of each. If there is no file of a name, nothing
// is attached for it. It ends with ctx, also while a file system hangs.
func (a *app) attachFiles(ctx context.Context, q *host.Question) error {
	names := mentionedFiles(q.Text)
	if len(names) == 0 {
		return nil
	}
	found, ok := within(ctx, &a.disk, 0, func() mentions { return findMentioned(names) })
	if !ok {
		return tenon.Errorf(tenon.CodeCancelled, "stopped while %s was looked for", strings.Join(names, ", "))
	}
	for _, text := range found.missing {
		a.note("%s", text)
	}
	parts, err := readParts(ctx, found.files)
	if err != nil {
		return err
	}
	for _, text := range found.attached {
		a.note("%s", text)
	}
	q.Files = append(q.Files, parts...)
	return nil
}

// mentions are the files that a question names, and what is said about them: about each file once it is read, and about
// names without a file.
type mentions struct{ files, attached, missing []string }

// findMentioned looks for the files of names. A name with a colon may be one of a server's resources.
func findMentioned(names []string) (m mentions) {
	for _, path := range names {
		if _, ok := host.AddressPart(path); ok {
			m.files, m.attached = append(m.files, path), append(m.attached, "attached "+safeLine(path))
			continue
		}
		say := func(format string, args ...any) { m.missing = append(m.missing, fmt.Sprintf(format, args...)) }
		switch info, err := os.Stat(path); {
		case err == nil && info.Mode().IsRegular():
			m.files = append(m.files, path)
			m.attached = append(m.attached, fmt.Sprintf("attached %s, %s", safeLine(path),
				plural(int(info.Size()), "byte")))
		case err == nil && info.IsDir():
			say("@%s is a folder, and is not attached; name a file in it", safeLine(path))
		case err == nil:
			say("@%s is a pipe or a device, and is not attached; name a file", safeLine(path))
		case !strings.Contains(path, ":"):
			dir, base := filepath.Split(path)
			var names []string
			for _, name := range fileNames(dir) {
				names = append(names, strings.TrimPrefix(strings.TrimSuffix(name, " "), dir))
			}
			meant := ""
			if near := tenon.Nearest(base, names); near != "" {
				meant = "; did you mean '@" + safeLine(dir+near) + "'?"
			}
			say("there is no file %s, and nothing is attached%s", safeLine(path), meant)
		}
	}
	return m
}

// readParts reads files as [host.FileParts] does. A file system that hangs, such as one of a network, cannot be
// interrupted: if ctx ends first, the read continues alone until it ends.
func readParts(ctx context.Context, files []string) ([]tenon.Part, error) {
	type read struct {
		parts []tenon.Part
		err   error
	}
	if len(files) == 0 {
		return nil, nil
	}
	done := make(chan read, 1)
	go func() {
		parts, err := host.FileParts(files)
		done <- read{parts, err}
	}()
	select {
	case r := <-done:
		return r.parts, r.err
	case <-ctx.Done():
		return nil, tenon.Errorf(tenon.CodeCancelled, "stopped while %s was read", strings.Join(files, ", "))
	}
}

// fileWord returns the beginning of the name of a file before the cursor, and the word with its mark. quoted reports
// whether the name began with a quote.
func fileWord(before string) (word, typed string, quoted, ok bool) {
	if i := strings.LastIndex(before, `@"`); i >= 0 && !strings.ContainsAny(before[i+2:], "\"\n") {
		return before[i:], before[i+2:], true, true
	}
	word = before[strings.LastIndexAny(before, " \t\n")+1:]
	typed, ok = strings.CutPrefix(word, "@")
	return word, typed, false, ok && !strings.Contains(typed, ":")
}

// offeredFiles completes the name of a file. A name with blanks becomes quoted.
func (a *app) offeredFiles(ctx context.Context, before string) (tui.Completion, bool) {
	word, typed, quoted, ok := fileWord(before)
	if !ok {
		return tui.Completion{}, false
	}
	width := a.width()
	list, ok := within(ctx, &a.disk, tabWait, func() []string { return fileNames(typed) })
	if !ok {
		return tui.Completion{Note: "the folder of " + safeLine(word) + " does not answer"}, true
	}
	if len(list) == 0 {
		return tui.Completion{}, false
	}
	blanks := slices.ContainsFunc(list, func(name string) bool {
		return strings.Contains(strings.TrimSuffix(name, " "), " ")
	})
	if !quoted && !blanks {
		return offered("@", word, list, width), true
	}
	for i, s := range list {
		if name, whole := strings.CutSuffix(s, " "); whole {
			list[i] = name + `" `
		}
	}
	return offered(`@"`, word, list, width), true
}

// offered returns the completion of a word that begins with a mark.
func offered(mark, word string, list []string, width int) tui.Completion {
	common := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	common = strings.ToValidUTF8(common, "")
	if len(list) == 1 || len(mark+common) > len(word) {
		return tui.Completion{Back: len(word), Text: mark + common}
	}
	return tui.Completion{Note: columns(list, width)}
}
