package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
)

// ServeHTTP serves the handler on a free port of the loopback interface until in ends. It first writes the
// URL, with the path /mcp, to out as a JSON string.
func ServeHTTP(in io.Reader, out io.Writer, h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bench: listening on the loopback: %w", err)
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

// StartHTTP starts the command, which must run [ServeHTTP]. It returns the URL of the server and a function
// that stops it.
func StartHTTP(command ...string) (url string, stop func() error, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("bench: starting the server: %w", err)
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if err := json.NewDecoder(out).Decode(&url); err != nil {
		return "", nil, errors.Join(fmt.Errorf("bench: the server did not say its URL: %w", err), stop())
	}
	return url, stop, nil
}
