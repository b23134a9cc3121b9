import helloworld.GreeterGrpc;
import helloworld.HelloReply;
import helloworld.HelloRequest;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.IntStream;

/**
 * The service Greeter of ../helloworld.proto: Greeter PORT
 *
 * <p>Event loops read and write, one per core by default, and an executor runs the calls. Its default starts a thread
 * whenever the others are busy; grpc.io/docs/guides/performance recommends one with a limited number of threads for
 * production. This is that of the project's own benchmark server (AsyncServer in benchmarks/ of grpc-java). Without
 * an executor (directExecutor), calls would save a change of threads, but none could ever block.
 */
public class Greeter extends GreeterGrpc.GreeterImplBase {
    public static void main(String[] args) throws Exception {
        int cores = Runtime.getRuntime().availableProcessors();
        var executor = new ForkJoinPool(
            cores, ForkJoinPool.defaultForkJoinWorkerThreadFactory, null, /* asyncMode */ true);
        NettyServerBuilder
            .forAddress(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])))
            .executor(executor)
            .addService(new Greeter())
            .build()
            .start()
            .awaitTermination();
    }

    @Override
    public void sayHello(HelloRequest request, StreamObserver<HelloReply> observer) {
        observer.onNext(reply("Hello " + request.getName()));
        observer.onCompleted();
    }

    @Override
    public void sayHelloStreamReply(HelloRequest request, StreamObserver<HelloReply> observer) {
        var call = (ServerCallStreamObserver<HelloReply>) observer;
        var numbers = IntStream.rangeClosed(1, request.getReplies()).iterator();
        if (!numbers.hasNext()) {
            call.onCompleted();
        }
        // It is not ready while the client does not read.
        call.setOnReadyHandler(() -> {
            while (call.isReady() && numbers.hasNext()) {
                call.onNext(reply("Hello " + request.getName() + " " + numbers.next()));
                if (!numbers.hasNext()) {
                    call.onCompleted();
                }
            }
        });
    }

    private static HelloReply reply(String message) {
        return HelloReply.newBuilder().setMessage(message).build();
    }
}
