module github.com/tenonhq/tenon/internal/peers/oldsdk

go 1.26.8

require github.com/tenonhq/tenon/internal/rivals v0.0.0

replace (
	github.com/modelcontextprotocol/go-sdk => github.com/modelcontextprotocol/go-sdk v1.7.0
	github.com/tenonhq/tenon => ../../..
	github.com/tenonhq/tenon/internal/rivals => ../../rivals
)
