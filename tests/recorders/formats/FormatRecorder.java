import java.lang.reflect.Array;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.conversion.RowRowConverter;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.runtime.connector.source.ScanRuntimeProviderContext;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.Row;

/** Records what Flink's formats make of messages: a line of JSON for each case in, the same with rows out. */
public class FormatRecorder {
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            ObjectNode recorded = (ObjectNode) MAPPER.readTree(line);
            record(recorded);
            lines.add(MAPPER.writeValueAsString(recorded));
        }
        Files.write(Path.of(arguments[1]), lines);
    }

    static void record(ObjectNode recorded) throws Exception {
        DataType type = TypeConversions.fromLogicalToDataType(
                LogicalTypeParser.parse(recorded.get("type").textValue(), FormatRecorder.class.getClassLoader()));
        DeserializationFormatFactory factory = recorded.get("format").textValue().equals("csv")
                ? new org.apache.flink.formats.csv.CsvFormatFactory()
                : recorded.get("format").textValue().equals("raw")
                        ? new org.apache.flink.formats.raw.RawFormatFactory()
                        : new org.apache.flink.formats.json.JsonFormatFactory();
        Configuration options = new Configuration();
        recorded.get("options").fields().forEachRemaining(
                each -> options.setString(each.getKey(), each.getValue().textValue()));
        ArrayNode rows = recorded.putArray("rows");
        DeserializationSchema<RowData> schema;
        try {
            DecodingFormat<DeserializationSchema<RowData>> format = factory.createDecodingFormat(null, options);
            schema = format.createRuntimeDecoder(ScanRuntimeProviderContext.INSTANCE, type);
            schema.open(null);
        } catch (Exception refused) {
            recorded.put("refused", String.valueOf(refused.getMessage()));
            return;
        }
        RowRowConverter external = RowRowConverter.create(type);
        external.open(FormatRecorder.class.getClassLoader());
        for (JsonNode message : recorded.get("messages")) {
            try {
                byte[] bytes = message.isNull() ? null : Base64.getDecoder().decode(message.textValue());
                RowData row = schema.deserialize(bytes);
                rows.add(row == null ? MAPPER.nullNode() : MAPPER.valueToTree(plain(external.toExternal(row))));
            } catch (Throwable failed) {
                rows.add("failed");
            }
        }
    }

    static Object plain(Object value) {
        if (value == null) {
            return null;
        }
        List<Object> found = new ArrayList<>();
        if (value instanceof Row) {
            for (int field = 0; field < ((Row) value).getArity(); field++) {
                found.add(plain(((Row) value).getField(field)));
            }
            return found;
        }
        if (value instanceof byte[]) {
            return Base64.getEncoder().encodeToString((byte[]) value);
        }
        if (value.getClass().isArray()) {
            for (int element = 0; element < Array.getLength(value); element++) {
                found.add(plain(Array.get(value, element)));
            }
            return found;
        }
        if (value instanceof Map) {
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                List<Object> entry = new ArrayList<>();
                entry.add(plain(each.getKey()));
                entry.add(plain(each.getValue()));
                found.add(entry);
            }
            return found;
        }
        return value.toString();
    }
}
