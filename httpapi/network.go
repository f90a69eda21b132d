package httpapi

import (
	"context"
	"net"
	"net/http"
)

// SocketURL is the URL that precedes the paths of a tenon serve if requests use [SocketNetwork].
const SocketURL = "http://tenon"

// SocketNetwork returns a network on which every address leads to the socket of a tenon serve. If no process listens
// there, its errors have code unreachable.
func SocketNetwork(path string) *http.Transport {
	return &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) }}
}
