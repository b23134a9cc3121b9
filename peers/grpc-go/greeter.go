// The service Greeter of ../helloworld.proto: greeter --port PORT --cores CORES
//
// As the examples of grpc-go start a server, with all options at their defaults. NumStreamWorkers, which reuses
// goroutines, is experimental and off by default.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
	"strconv"

	"google.golang.org/grpc"

	pb "regatta/peers/grpc-go/helloworld"
)

//go:generate ./generate

type greeter struct {
	pb.UnimplementedGreeterServer
}

func (greeter) SayHello(_ context.Context, request *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Message: "Hello " + request.GetName()}, nil
}

func (greeter) SayHelloStreamReply(
	request *pb.HelloRequest, stream grpc.ServerStreamingServer[pb.HelloReply],
) error {
	hello := "Hello " + request.GetName() + " "
	for n := 1; n <= int(request.GetReplies()); n++ {
		// Send waits while the client does not read.
		if err := stream.Send(&pb.HelloReply{Message: hello + strconv.Itoa(n)}); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterGreeterServer(server, greeter{})
	log.Fatal(server.Serve(listener))
}
