import static java.nio.charset.StandardCharsets.UTF_8;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.regex.Pattern;

/** Hashes a file, as many times as requested. */
public class HashServlet extends HttpServlet {
    private static final int MAX_TIMES = 100_000;
    private static final Pattern SALT = Pattern.compile("[0-9a-f]{1,32}");
    private static final Path FILE = Path.of(System.getenv("HASH_FILE"));

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        int times = times(request.getParameter("n"));
        if (times < 1 || times > MAX_TIMES) {
            answer(response, 400, "n must be an integer from 1 to " + MAX_TIMES);
            return;
        }
        String salt = request.getParameter("salt");
        if (salt != null && !SALT.matcher(salt).matches()) {
            answer(response, 400, "salt must be 1 to 32 lower-case hex digits");
            return;
        }
        byte[] data;
        try {
            data = Files.readAllBytes(FILE);
        } catch (IOException e) {
            answer(response, 500, "the file cannot be read: " + e);
            return;
        }
        answer(response, 200, HexFormat.of().formatHex(digest(data, times, salt)));
    }

    /** Parses the parameter n. Returns 0 if it is not an integer. */
    private static int times(String n) {
        try {
            return Integer.parseInt(n);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    /** With a salt, each digest covers the previous digest and then the file. */
    private static byte[] digest(byte[] data, int times, String salt) throws ServletException {
        try {
            MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
            byte[] digest = salt == null ? null : salt.getBytes(UTF_8);
            for (int i = 0; i < times; i++) {
                if (salt != null) {
                    sha256.update(digest);
                }
                digest = sha256.digest(data);
            }
            return digest;
        } catch (NoSuchAlgorithmException e) {
            throw new ServletException(e);
        }
    }

    private static void answer(HttpServletResponse response, int status, String text)
            throws IOException {
        byte[] body = text.getBytes(UTF_8);
        response.setStatus(status);
        response.setContentType("text/plain");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
