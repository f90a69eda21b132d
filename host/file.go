package host

import (
	"bytes"
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
	maxFile  = 20 << 20 // maximum size of one file and of all files of a question
	maxText  = 1 << 20  // bytes of a text file
	maxFiles = 32
)

// FileParts reads the files of a question: pictures (png, jpeg, gif, webp), PDF documents, sounds (wav, mp3, ogg, flac
// and others), videos (mp4, webm, mov and others), and UTF-8 texts, which the message contains under their file names.
// A path can also be an address; see [AddressPart]. Errors: not_found, too_large, invalid (any other content).
func FileParts(paths []string) ([]tenon.Part, error) {
	if len(paths) > maxFiles {
		return nil, tenon.Errorf(tenon.CodeInvalid, "there are %d files; %d is the limit of one question", len(paths),
			maxFiles)
	}
	var parts []tenon.Part
	left := int64(maxFile)
	for _, path := range paths {
		if p, ok := AddressPart(path); ok {
			parts = append(parts, p)
			continue
		}
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
	part, isMedia := mediaPart(kind, name, base64.StdEncoding.EncodeToString(data))
	switch {
	case isMedia:
	case isText(data):
		if len(data) > maxText {
			return part, tenon.Errorf(tenon.CodeTooLarge, "file %s is a text of more than %d MiB, which no "+
				"model takes", name, maxText>>20)
		}
		return tenon.Part{Type: tenon.PartText, Text: fmt.Sprintf("File %s:\n\n%s", tenon.Visible(name), data)}, nil
	default:
		return part, tenon.Errorf(tenon.CodeInvalid, "file %s (%s) is no picture, PDF document, sound, video or "+
			"text in UTF-8, so no model would take it", name, kind)
	}
	return part, nil
}

// mediaPart makes a part from the base64 data of a picture, PDF document, sound or video. ok is false for other kinds,
// which no model takes.
func mediaPart(kind, name, data string) (part tenon.Part, ok bool) {
	part = tenon.Part{MimeType: kind, Data: data}
	switch {
	case kind == "image/png" || kind == "image/jpeg" || kind == "image/gif" || kind == "image/webp":
		part.Type = tenon.PartImage
	case kind == "application/pdf" || strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/"):
		part.Type, part.Text = tenon.PartFile, name
	default:
		return part, false
	}
	return part, true
}

// isText reports whether data is a text in UTF-8. A text has no NUL.
func isText(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
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
	if byName := kindOfName(name); !utf8.Valid(data) &&
		(strings.HasPrefix(byName, "audio/") || strings.HasPrefix(byName, "video/")) {
		return byName
	}
	return kind
}

// kinds are the MIME types of files by the ends of their names. The table of the operating system may lack them.
var kinds = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".webp": "image/webp", ".pdf": "application/pdf", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".flac": "audio/flac",
	".ogg": "audio/ogg", ".m4a": "audio/mp4", ".aac": "audio/aac", ".mp4": "video/mp4", ".mov": "video/quicktime",
	".webm": "video/webm", ".mpeg": "video/mpeg", ".mpg": "video/mpeg", ".avi": "video/x-msvideo",
	".mkv": "video/x-matroska", ".flv": "video/x-flv", ".wmv": "video/x-ms-wmv", ".3gp": "video/3gpp"}

// kindOfName returns the MIME type of a file by the end of its name, or "".
func kindOfName(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	if kind := kinds[ext]; kind != "" {
		return kind
	}
	kind, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return kind
}
