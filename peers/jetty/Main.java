import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.VirtualThreadPool;

/** Runs the servlet of ../tomcat in Jetty: Main PORT THREADS. */
public class Main {
    public static void main(String[] args) throws Exception {
        var threads = new QueuedThreadPool();
        if (args[1].equals("virtual")) {
            threads.setVirtualThreadsExecutor(new VirtualThreadPool());
        }
        var server = new Server(threads);
        var connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(args[0]));
        connector.setAcceptQueueSize(4096);
        connector.setIdleTimeout(3_600_000);
        server.addConnector(connector);
        var handler = new ServletContextHandler();
        handler.addServlet(HashServlet.class, "/hash");
        server.setHandler(handler);
        server.start();
        server.join();
    }
}
