package host

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// The bounds of the files of a question.
const (
	maxFile  = 20 << 20 // bytes of one file, and of all files of a question
	maxText  = 1 << 20  // bytes of a text file
	maxFiles = 32
)

// FileParts reads the files of a question: pictures (png, jpeg, gif, webp), PDF documents, sounds (wav, mp3, ogg, flac
// and others), and UTF-8 texts, which the message contains under their file names. Errors: not_found, too_large,
// invalid (any other content).
func FileParts(paths []string) ([]tenon.Part, error) {
	if len(paths) > maxFiles {
		return nil, tenon.Errorf(tenon.CodeInvalid, "there are %d files; %d is the limit of one question", len(paths),
			maxFiles)
	}
	var parts []tenon.Part
	left := int64(maxFile)
	for _, path := range paths {
		p, size, err := filePart(path, left)
		if err != nil {
			return nil, err
		}
		left -= size
		parts = append(parts, p)
	}
	return parts, nil
}

func filePart(path string, most int64) (tenon.Part, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return tenon.Part{}, 0, tenon.Errorf(tenon.CodeNotFound, "file %s: %w", path, reasonOf(err))
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		return tenon.Part{}, 0, tenon.Errorf(tenon.CodeInvalid, "file %s is a folder", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	name := filepath.Base(path)
	switch {
	case err != nil:
		return tenon.Part{}, 0, tenon.Errorf(tenon.CodeNotFound, "file %s: %w", path, reasonOf(err))
	case int64(len(data)) > most:
		return tenon.Part{}, 0, tenon.Errorf(tenon.CodeTooLarge, "the files of the question have more than %d MiB "+
			"in all with %s", maxFile>>20, path)
	case len(data) == 0:
		return tenon.Part{}, 0, tenon.Errorf(tenon.CodeInvalid, "file %s is empty", path)
	}
	part, err := FilePart(name, data)
	return part, int64(len(data)), err
}

// reasonOf returns the cause of a file's error, without the file's name and the system call.
func reasonOf(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// FilePart makes a part of a question from the content of a file, as [FileParts] does. Errors: too_large, invalid.
func FilePart(name string, data []byte) (tenon.Part, error) {
	kind := kindOfFile(name, data)
	part := tenon.Part{MimeType: kind, Data: base64.StdEncoding.EncodeToString(data)}
	switch {
	case kind == "image/png" || kind == "image/jpeg" || kind == "image/gif" || kind == "image/webp":
		part.Type = tenon.PartImage
	case kind == "application/pdf" || strings.HasPrefix(kind, "audio/"):
		part.Type, part.Text = tenon.PartFile, name
	case utf8.Valid(data) && !strings.ContainsRune(string(data), 0):
		if len(data) > maxText {
			return part, tenon.Errorf(tenon.CodeTooLarge, "file %s is a text of more than %d MiB, which no "+
				"model takes", name, maxText>>20)
		}
		return tenon.Part{Type: tenon.PartText, Text: fmt.Sprintf("File %s:\n\n%s", tenon.Visible(name), data)}, nil
	default:
		return part, tenon.Errorf(tenon.CodeInvalid, "file %s (%s) is no picture, PDF document, sound or text in "+
			"UTF-8, so no model would take it", name, kind)
	}
	return part, nil
}

// kindOfFile returns the MIME type of a file by its content or, if the content does not identify it, by its name.
func kindOfFile(name string, data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch kind {
	case "application/octet-stream", "text/plain":
	case "audio/wave":
		return "audio/wav"
	default:
		return kind
	}
	if byName, _, err := mime.ParseMediaType(mime.TypeByExtension(strings.ToLower(filepath.Ext(name)))); err == nil &&
		strings.HasPrefix(byName, "audio/") && !utf8.Valid(data) {
		return byName
	}
	if ext := strings.ToLower(filepath.Ext(name)); kind == "application/octet-stream" && ext == ".mp3" {
		return "audio/mpeg" // MP3 without an ID3 header
	}
	return kind
}
