import io.helidon.http.HeaderValues;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.time.Duration;

/** Replies with the time over HTTP: Hello PORT. */
public class Hello {
    // Made once, because each one records a stack trace.
    private static final CloseConnectionException CLOSE = new CloseConnectionException("as the request asks");

    public static void main(String[] args) {
        WebServer.builder()
            .host("127.0.0.1")
            .port(Integer.parseInt(args[0]))
            .backlog(4096)
            .connectionOptions(options -> options.tcpNoDelay(true)) // like the other peers; off by default
            .idleConnectionTimeout(Duration.ofHours(1))
            .routing(routing -> routing.get("/", Hello::hello))
            .build()
            .start();
    }

    private static void hello(ServerRequest request, ServerResponse response) {
        response.header(HeaderValues.CONTENT_TYPE_TEXT_PLAIN);
        response.send("Hello. The time is " + System.currentTimeMillis() / 1000);
        if (request.headers().contains(HeaderValues.CONNECTION_CLOSE)) {
            // Otherwise Helidon would announce the close and not do it (helidon issue 12324).
            throw CLOSE;
        }
    }
}
