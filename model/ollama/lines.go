package ollama

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/tenonhq/tenon/model"
)

// maxLine bounds a line of an answer. The official client has the same bound for requests with images.
const maxLine = 16 << 20

// Lines reads the lines of a stream that are not blank. The data is valid until the next call.
func Lines(body io.Reader) model.Events {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	return func() ([]byte, error) {
		for lines.Scan() {
			if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
				return line, nil
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, model.Broken("one line of the answer is larger than %d MiB", maxLine>>20)
		case err != nil:
			return nil, err
		}
		return nil, io.EOF
	}
}
