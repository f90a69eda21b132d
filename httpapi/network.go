package httpapi

import (
	"context"
	"net"
	"net/http"
)

// SocketURL is the URL in front of the paths of a tenon serve that is reached by [SocketNetwork].
const SocketURL = "http://tenon"

// SocketNetwork returns a network on which every address is the socket of a tenon serve. Its errors have the code
// unreachable if no process listens there.
func SocketNetwork(path string) *http.Transport {
	return &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) }}
}
