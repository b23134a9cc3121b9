import org.apache.catalina.startup.Tomcat;

/** Runs the servlet in Tomcat: Main PORT FOLDER THREADS. FOLDER is for Tomcat's files. */
public class Main {
    public static void main(String[] args) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(args[1]);
        tomcat.setPort(Integer.parseInt(args[0]));
        var connector = tomcat.getConnector();
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("acceptCount", "4096");
        connector.setProperty("maxKeepAliveRequests", "-1"); // by default it closes after 100
        connector.setProperty("keepAliveTimeout", "3600000");
        connector.setProperty("useVirtualThreads", String.valueOf(args[2].equals("virtual")));
        var context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "hash", new HashServlet()).addMapping("/hash");
        tomcat.start();
        tomcat.getServer().await();
    }
}
