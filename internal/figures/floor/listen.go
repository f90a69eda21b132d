package floor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// ServeHTTP serves the handler at a free port of the loopback until in ends. It
// first writes the URL, with the path /mcp, to out as a JSON string.
func ServeHTTP(in io.Reader, out io.Writer, h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("floor: listening on the loopback: %w", err)
	}
	s := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	err = json.NewEncoder(out).Encode("http://" + l.Addr().String() + "/mcp")
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	err = errors.Join(err, s.Close())
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
