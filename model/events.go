package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errEventTooLarge = errors.New("event too large")

// newEvents is a stand-in until internal/sse is there.
func newEvents(r io.Reader, most int) Events {
	br := bufio.NewReaderSize(r, 16<<10)
	var data []byte
	return func() ([]byte, error) {
		data = data[:0]
		has := false
		for {
			var line []byte
			for {
				p, err := br.ReadSlice('\n')
				line = append(line, p...)
				if len(line)+len(data) > most {
					return nil, errEventTooLarge
				}
				if err == bufio.ErrBufferFull {
					continue
				}
				if err != nil {
					if err == io.EOF && (has || bytes.HasPrefix(line, []byte("data:"))) {
						break
					}
					return nil, err
				}
				break
			}
			eof := !bytes.HasSuffix(line, []byte("\n"))
			line = bytes.TrimRight(line, "\r\n")
			if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				if has {
					data = append(data, '\n')
				}
				has = true
				data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			}
			if (len(line) == 0 || eof) && has {
				return data, nil
			}
		}
	}
}
