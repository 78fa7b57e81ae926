import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.CompiledPlan;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.api.internal.TableImpl;
import org.apache.flink.table.api.internal.TableResultInternal;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.DataTypeFactory;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.SupportsPartitioning;
import org.apache.flink.table.connector.sink.abilities.SupportsWritingMetadata;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.connector.source.abilities.SupportsWatermarkPushDown;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.expressions.DefaultSqlFactory;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.AggregateFunction;
import org.apache.flink.table.functions.FunctionIdentifier;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.functions.TableFunction;
import org.apache.flink.table.functions.UserDefinedFunction;
import org.apache.flink.table.module.Module;
import org.apache.flink.table.operations.CreateTableASOperation;
import org.apache.flink.table.operations.ModifyOperation;
import org.apache.flink.table.operations.Operation;
import org.apache.flink.table.operations.QueryOperation;
import org.apache.flink.table.operations.SinkModifyOperation;
import org.apache.flink.table.operations.StatementSetOperation;
import org.apache.flink.table.operations.command.ResetOperation;
import org.apache.flink.table.operations.command.SetOperation;
import org.apache.flink.table.operations.ddl.AlterCatalogFunctionOperation;
import org.apache.flink.table.operations.ddl.CreateCatalogFunctionOperation;
import org.apache.flink.table.operations.ddl.CreateTableOperation;
import org.apache.flink.table.operations.ddl.CreateTempSystemFunctionOperation;
import org.apache.flink.table.operations.ddl.DropCatalogFunctionOperation;
import org.apache.flink.table.operations.ddl.DropTableOperation;
import org.apache.flink.table.operations.ddl.DropTempSystemFunctionOperation;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.inference.InputTypeStrategies;
import org.apache.flink.table.types.inference.TypeInference;
import org.apache.flink.table.types.inference.TypeStrategies;
import org.apache.flink.table.types.logical.utils.LogicalTypeUtils;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Plans scripts of Flink SQL: a line of JSON in, a line of JSON out, until the input ends.
 *
 * <p>Janino, which Flink uses for its generated code, compiles this file when the process starts: no lambdas, no calls
 * of static methods of interfaces, and erased types where an interface has type parameters.
 */
public class Planner {
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        // EXPLAIN generates code that calls the functions declared here.
        Thread.currentThread().setContextClassLoader(Planner.class.getClassLoader());
        PrintStream answers = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(MAPPER.writeValueAsString(new Script(MAPPER.readTree(line)).planned()));
            answers.flush();
        }
        System.exit(0);
    }

    /** The statements of a request, which one environment gets in their order. */
    static class Script {
        final JsonNode request;
        final TableEnvironmentImpl tables;
        final ObjectNode answer = MAPPER.createObjectNode();
        final ArrayNode steps = MAPPER.createArrayNode();
        final Map settings = new LinkedHashMap();
        final Map declared = new HashMap();
        final Map views = new HashMap(); // tables that calls make, by the query that reads one
        final Functions functions;
        final boolean asks; // of the session, and for no plan: temporary tables stay temporary ones

        Script(JsonNode request) {
            this.request = request;
            JsonNode statements = (JsonNode) request.get("statements");
            this.asks =
                    statements.size() > 0
                            && ((JsonNode) statements.get(statements.size() - 1)).isTextual()
                            && text((JsonNode) statements.get(statements.size() - 1))
                                    .matches("(?is)\\s*(SHOW|DESC|DESCRIBE|EXPLAIN)\\b.*");
            this.tables = TableEnvironmentImpl.create(EnvironmentSettings.newInstance().inStreamingMode().build());
            this.tables.loadModule("logs", new Logs());
            this.tables.getConfig().set("table.local-time-zone", "UTC");
            this.functions = new Functions(tables);
        }

        ObjectNode planned() {
            int number = 0;
            try {
                JsonNode given = (JsonNode) request.get("settings");
                for (Iterator each = given.fieldNames(); each.hasNext(); ) {
                    String key = (String) each.next();
                    set(key, text((JsonNode) given.get(key)));
                }
                for (Iterator each = ((JsonNode) request.get("functions")).elements(); each.hasNext(); ) {
                    JsonNode function = (JsonNode) each.next();
                    if (((JsonNode) function.get("statement")).isNull()) {
                        run(0, text((JsonNode) function.get("text")), function);
                    } else {
                        declared.put(((JsonNode) function.get("statement")).intValue(), function);
                    }
                }
                JsonNode statements = (JsonNode) request.get("statements");
                for (; number < statements.size(); number++) {
                    JsonNode statement = (JsonNode) statements.get(number);
                    if (statement.isArray()) {
                        view(text((JsonNode) statement.get(0)), (Table) new Calls(tables).made((JsonNode) statement.get(1)));
                    } else {
                        run(number, text(statement), (JsonNode) declared.get(number));
                    }
                }
                answer.set("steps", steps);
            } catch (Throwable failure) {
                answer.put("statement", number);
                ArrayNode messages = answer.putArray("messages");
                for (Throwable each = failure; each != null; each = each.getCause()) {
                    messages.add(each.getMessage() == null ? each.getClass().getName() : each.getMessage());
                }
                answer.put("failure", failure.getClass().getName());
            }
            return answer;
        }

        void run(int number, String text, JsonNode function) throws Exception {
            List operations = tables.getParser().parse(text);
            Operation operation = (Operation) operations.get(0);
            if (functions.take(operation, function)) {
                return;
            }
            String kind = operation.getClass().getSimpleName();
            if (operation instanceof SetOperation) {
                Optional key = ((SetOperation) operation).getKey();
                if (key.isPresent()) {
                    set((String) key.get(), (String) ((SetOperation) operation).getValue().get());
                }
            } else if (operation instanceof ResetOperation) {
                Optional key = ((ResetOperation) operation).getKey();
                if (key.isPresent()) {
                    settings.remove(key.get());
                    tables.getConfig().getConfiguration().removeKey((String) key.get());
                } else {
                    for (Iterator each = settings.keySet().iterator(); each.hasNext(); ) {
                        tables.getConfig().getConfiguration().removeKey((String) each.next());
                    }
                    settings.clear();
                }
            } else if (operation instanceof StatementSetOperation) {
                step(number, tables.compilePlan(direct(((StatementSetOperation) operation).getOperations())), false);
            } else if (operation instanceof ModifyOperation) {
                step(number, tables.compilePlan(direct(Collections.singletonList(operation))), false);
                if (operation instanceof CreateTableASOperation) {
                    create(((CreateTableASOperation) operation).getCreateTableOperation());
                }
            } else if (operation instanceof QueryOperation) {
                select(number, text, (QueryOperation) operation);
            } else if (kind.startsWith("AddJar")) {
                return; // connectors are replaced by logs; a function of the jar is missing where it is called
            } else if (operation instanceof CreateTableOperation && !asks) {
                create((CreateTableOperation) operation);
            } else if (operation instanceof DropTableOperation
                    && ((DropTableOperation) operation).isTemporary()
                    && !asks) {
                DropTableOperation table = (DropTableOperation) operation;
                tables.executeInternal(new DropTableOperation(table.getTableIdentifier(), table.isIfExists(), false));
            } else if (kind.matches("(Create|Drop|Alter|Use|Load|Unload).*|NopOperation")) {
                tables.executeInternal(operation);
            } else if (kind.matches("(Show|Describe|Explain).*") && !kind.startsWith("ShowModules")) {
                answer(number, tables.executeInternal(operation));
            } else {
                throw new UnsupportedOperationException(kind);
            }
        }

        /** Answers a question about the session with its rows, and as Flink prints them. */
        void answer(int number, TableResultInternal result) throws Exception {
            ObjectNode step = steps.addObject();
            step.put("statement", number);
            step.set("columns", MAPPER.valueToTree(result.getResolvedSchema().getColumnNames()));
            ArrayNode rows = step.putArray("rows");
            for (Iterator each = result.collect(); each.hasNext(); ) {
                Row row = (Row) each.next();
                ArrayNode values = rows.addArray();
                for (int field = 0; field < row.getArity(); field++) {
                    Object value = row.getField(field);
                    values.add((JsonNode) MAPPER.valueToTree(value instanceof Boolean || value == null ? value : value.toString()));
                }
            }
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream out = System.out;
            System.setOut(new PrintStream(printed, true, "UTF-8"));
            try {
                result.print();
            } finally {
                System.setOut(out);
            }
            step.put("printed", printed.toString("UTF-8"));
        }

        void create(CreateTableOperation table) {
            // A plan has schema and options of permanent tables alone.
            tables.executeInternal(
                    new CreateTableOperation(
                            table.getTableIdentifier(), table.getCatalogTable(), table.isIgnoreIfExists(), false));
        }

        static String text(JsonNode node) {
            return node.textValue();
        }

        void set(String key, String value) {
            settings.put(key, value);
            tables.getConfig().set(key, value);
        }

        /** Names a table by its SQL: of the calls of a table function in a view of a table, Flink loses the arguments. */
        void view(String name, Table table) {
            String read = "SELECT * FROM " + name;
            try {
                String made = sql(((TableImpl) table).getQueryOperation());
                List create = tables.getParser().parse("CREATE TEMPORARY VIEW " + name + " AS " + made);
                tables.executeInternal((Operation) create.get(0));
                views.put(sql((QueryOperation) tables.getParser().parse(read).get(0)), table);
            } catch (RuntimeException failure) { // Flink does not write all calls as SQL, nor read all that it writes
                tables.dropTemporaryView(name);
                tables.createTemporaryView(name, table);
                views.put(sql((QueryOperation) tables.getParser().parse(read).get(0)), table);
            }
        }

        static String sql(QueryOperation query) {
            return query.asSerializableString(DefaultSqlFactory.INSTANCE);
        }

        /** Lets insertions that read the view of a table take the table, as Flink plans it. */
        List direct(List insertions) {
            List found = new ArrayList();
            for (Iterator each = insertions.iterator(); each.hasNext(); ) {
                Object insertion = each.next();
                if (insertion instanceof SinkModifyOperation && !views.isEmpty()) {
                    SinkModifyOperation read = (SinkModifyOperation) insertion;
                    Table table = (Table) views.get(sql(read.getChild()));
                    if (table != null) {
                        insertion =
                                new SinkModifyOperation(
                                        read.getContextResolvedTable(),
                                        ((TableImpl) table).getQueryOperation(),
                                        read.getStaticPartitions(),
                                        read.getTargetColumns(),
                                        read.isOverwrite(),
                                        read.getDynamicOptions());
                    }
                }
                found.add(insertion);
            }
            return found;
        }

        /** Plans a query as the insertion into a table of its columns that takes all changes. */
        void select(int number, String text, QueryOperation query) throws Exception {
            Schema.Builder schema = Schema.newBuilder();
            for (Iterator each = query.getResolvedSchema().getColumns().iterator(); each.hasNext(); ) {
                Column column = (Column) each.next();
                schema.column(
                        column.getName(),
                        TypeConversions.fromLogicalToDataType(
                                LogicalTypeUtils.removeTimeAttributes(column.getDataType().getLogicalType())
                                        .copy(true)));
            }
            tables.createTable(
                    "select", TableDescriptor.forConnector("print").schema(schema.build()).build());
            try {
                List insert = tables.getParser().parse("INSERT INTO `select` " + text);
                step(number, tables.compilePlan(direct(insert)), true);
            } finally {
                tables.dropTable("select");
            }
        }

        void step(int number, CompiledPlan plan, boolean isQuery) throws Exception {
            ObjectNode step = steps.addObject();
            step.put("statement", number);
            step.put("is_query", isQuery);
            step.set("settings", MAPPER.valueToTree(settings));
            Map numbers = functions.numbers();
            if (!numbers.isEmpty()) {
                step.set("functions", MAPPER.valueToTree(numbers));
            }
            step.set("plan", MAPPER.readTree(plan.asJsonString()));
        }
    }

    /** Makes the calls of the Table API that a program has recorded. */
    static class Calls {
        final TableEnvironmentImpl tables;

        Calls(TableEnvironmentImpl tables) {
            this.tables = tables;
        }

        /** Returns what a call returns, or a value. */
        Object made(JsonNode node) throws Exception {
            if (node.isNull()) {
                return null;
            }
            if (!node.isObject()) {
                return node.isBoolean() ? (Object) node.booleanValue() : node.textValue();
            }
            if (node.has("call")) {
                return called(node);
            }
            if (node.has("enum")) {
                JsonNode names = (JsonNode) node.get("enum");
                return ofClass(Script.text((JsonNode) names.get(0))).getField(Script.text((JsonNode) names.get(1))).get(null);
            }
            String kind = (String) node.fieldNames().next();
            String text = Script.text((JsonNode) node.get(kind));
            if (kind.equals("type")) {
                return tables.getCatalogManager().getDataTypeFactory().createDataType(text);
            } else if (kind.equals("int")) {
                return Integer.valueOf(text);
            } else if (kind.equals("long")) {
                return Long.valueOf(text);
            } else if (kind.equals("integer")) {
                return new java.math.BigDecimal(text);
            } else if (kind.equals("double")) {
                return Double.valueOf(text);
            } else if (kind.equals("decimal")) {
                return new java.math.BigDecimal(text);
            } else if (kind.equals("bytes")) {
                return java.util.Base64.getDecoder().decode(text);
            } else if (kind.equals("date")) {
                return java.time.LocalDate.parse(text);
            } else if (kind.equals("time")) {
                return java.time.LocalTime.parse(text);
            } else if (kind.equals("timestamp")) {
                return java.time.LocalDateTime.parse(text);
            } else if (kind.equals("instant")) {
                return java.time.OffsetDateTime.parse(text).toInstant();
            }
            return java.time.Duration.of(Long.parseLong(text), java.time.temporal.ChronoUnit.MICROS);
        }

        Object called(JsonNode node) throws Exception {
            String name = Script.text((JsonNode) node.get("call"));
            JsonNode given = (JsonNode) node.get("arguments");
            Object[] arguments = new Object[given.size()];
            for (int number = 0; number < arguments.length; number++) {
                arguments[number] = made((JsonNode) given.get(number));
            }
            Object target = null;
            Class type;
            if (node.has("on")) {
                target = made((JsonNode) node.get("on"));
                type = target.getClass();
            } else if (Script.text((JsonNode) node.get("class")).equals("TableEnvironment")) {
                target = tables;
                type = tables.getClass();
            } else {
                type = ofClass(Script.text((JsonNode) node.get("class")));
            }
            java.lang.reflect.Method[] methods = type.getMethods();
            for (int varargs = 0; varargs < 2; varargs++) {
                for (int number = 0; number < methods.length; number++) {
                    java.lang.reflect.Method method = methods[number];
                    Object[] taken =
                            method.getName().equals(name) && !method.isBridge()
                                    ? taken(method, arguments, varargs == 1)
                                    : null;
                    if (taken != null) {
                        method.setAccessible(true);
                        try {
                            return method.invoke(target, taken);
                        } catch (java.lang.reflect.InvocationTargetException failure) {
                            Throwable cause = failure.getCause();
                            throw cause instanceof Exception ? (Exception) cause : new ValidationException("", cause);
                        }
                    }
                }
            }
            if (arguments.length == 0 && target == null) {
                return type.getField(name).get(null);
            }
            throw new ValidationException(
                    type.getSimpleName() + "." + name + " does not take " + java.util.Arrays.asList(arguments));
        }

        /** Returns arguments as a method takes them, or null if it does not. */
        static Object[] taken(java.lang.reflect.Method method, Object[] arguments, boolean varargs) {
            Class[] types = method.getParameterTypes();
            int single = varargs ? types.length - 1 : types.length;
            if (varargs ? !method.isVarArgs() || arguments.length < single : arguments.length != single) {
                return null;
            }
            Object[] taken = new Object[types.length];
            for (int number = 0; number < single; number++) {
                Object argument = arguments[number];
                if (argument instanceof Integer && (types[number] == Long.class || types[number] == long.class)) {
                    argument = Long.valueOf(((Integer) argument).longValue());
                }
                if (!takes(types[number], argument)) {
                    return null;
                }
                taken[number] = argument;
            }
            if (varargs) {
                Class type = types[single].getComponentType();
                Object rest = java.lang.reflect.Array.newInstance(type, arguments.length - single);
                for (int number = single; number < arguments.length; number++) {
                    if (!takes(type, arguments[number])) {
                        return null;
                    }
                    java.lang.reflect.Array.set(rest, number - single, arguments[number]);
                }
                taken[single] = rest;
            }
            return taken;
        }

        static boolean takes(Class type, Object argument) {
            if (argument == null) {
                return !type.isPrimitive();
            }
            return type.isInstance(argument)
                    || (type == int.class && argument instanceof Integer)
                    || (type == long.class && argument instanceof Long)
                    || (type == boolean.class && argument instanceof Boolean);
        }

        static Class ofClass(String name) throws ClassNotFoundException {
            String place = name.startsWith("Time") ? "org.apache.flink.table.expressions." : "org.apache.flink.table.api.";
            return Class.forName(place + name);
        }
    }

    /** The functions whose code is not in Java, by the names that plans have for them. */
    static class Functions {
        final TableEnvironmentImpl tables;
        final Map ofSystem = new HashMap();
        final Map temporary = new HashMap();
        final Map permanent = new HashMap(); // Flink has them as temporary ones: it makes permanent ones of classes

        Functions(TableEnvironmentImpl tables) {
            this.tables = tables;
        }

        /** Takes a statement about functions if it is of one of these, and returns whether it is. */
        boolean take(Operation operation, JsonNode declared) {
            if (operation instanceof CreateTempSystemFunctionOperation && declared != null) {
                CreateTempSystemFunctionOperation create = (CreateTempSystemFunctionOperation) operation;
                String name = FunctionIdentifier.normalizeName(create.getFunctionName());
                if (!ofSystem.containsKey(name) || !create.isIgnoreIfExists()) {
                    tables.createTemporarySystemFunction(name, made(declared));
                    ofSystem.put(name, declared);
                }
                return true;
            }
            if (operation instanceof DropTempSystemFunctionOperation) {
                DropTempSystemFunctionOperation drop = (DropTempSystemFunctionOperation) operation;
                ofSystem.remove(FunctionIdentifier.normalizeName(drop.getFunctionName()));
            } else if (operation instanceof CreateCatalogFunctionOperation && declared != null) {
                CreateCatalogFunctionOperation create = (CreateCatalogFunctionOperation) operation;
                ObjectIdentifier name = normal(create.getFunctionIdentifier());
                Map kind = create.isTemporary() ? temporary : permanent;
                if (kind.containsKey(name) && !create.isIgnoreIfExists()) {
                    throw new ValidationException("The function " + name.asSummaryString() + " already exists");
                }
                if (!kind.containsKey(name)) {
                    replace(name, kind, declared);
                }
                return true;
            } else if (operation instanceof AlterCatalogFunctionOperation && declared != null) {
                AlterCatalogFunctionOperation alter = (AlterCatalogFunctionOperation) operation;
                ObjectIdentifier name = normal(alter.getFunctionIdentifier());
                if (!alter.isTemporary() && permanent.containsKey(name)) {
                    replace(name, permanent, declared);
                    return true;
                }
            } else if (operation instanceof DropCatalogFunctionOperation) {
                DropCatalogFunctionOperation drop = (DropCatalogFunctionOperation) operation;
                ObjectIdentifier name = normal(drop.getFunctionIdentifier());
                Map kind = drop.isTemporary() ? temporary : permanent;
                if (kind.containsKey(name)) {
                    replace(name, kind, null);
                    return true;
                }
                if (drop.isTemporary() && permanent.containsKey(name)) {
                    if (!drop.isIfExists()) {
                        throw new ValidationException(
                                "The temporary function " + name.asSummaryString() + " does not exist");
                    }
                    return true;
                }
            }
            return false;
        }

        /** Lets a function have a name, or none; a temporary one hides a permanent one. */
        void replace(ObjectIdentifier name, Map kind, JsonNode declared) {
            if (seen(name) != null) {
                tables.dropTemporaryFunction(name.asSerializableString());
            }
            if (declared == null) {
                kind.remove(name);
            } else {
                kind.put(name, declared);
            }
            if (seen(name) != null) {
                tables.createTemporaryFunction(name.asSerializableString(), made(seen(name)));
            }
        }

        JsonNode seen(ObjectIdentifier name) {
            return (JsonNode) (temporary.containsKey(name) ? temporary : permanent).get(name);
        }

        Map numbers() {
            Map found = new LinkedHashMap();
            Map[] kinds = {permanent, temporary, ofSystem};
            for (int kind = 0; kind < kinds.length; kind++) {
                for (Iterator each = kinds[kind].entrySet().iterator(); each.hasNext(); ) {
                    Map.Entry entry = (Map.Entry) each.next();
                    Object name = entry.getKey();
                    String written =
                            name instanceof ObjectIdentifier
                                    ? ((ObjectIdentifier) name).asSerializableString()
                                    : (String) name;
                    found.put(written, ((JsonNode) ((JsonNode) entry.getValue()).get("number")).intValue());
                }
            }
            return found;
        }

        static ObjectIdentifier normal(ObjectIdentifier name) {
            return FunctionIdentifier.normalizeObjectIdentifier(name);
        }

        static UserDefinedFunction made(JsonNode declared) {
            String kind = Script.text((JsonNode) declared.get("kind"));
            Signature signature =
                    new Signature(
                            texts((JsonNode) declared.get("inputs")),
                            Script.text((JsonNode) declared.get("result")));
            if (kind.equals("table")) {
                return new DeclaredTable(signature);
            }
            if (kind.equals("aggregate")) {
                return new DeclaredAggregate(signature);
            }
            return new DeclaredScalar(signature);
        }

        static String[] texts(JsonNode nodes) {
            if (nodes.isNull()) {
                return null;
            }
            String[] found = new String[nodes.size()];
            for (int number = 0; number < found.length; number++) {
                found[number] = Script.text((JsonNode) nodes.get(number));
            }
            return found;
        }
    }

    /** Types of a function of the user, as texts of SQL. */
    public static class Signature implements Serializable {
        final String[] inputs;
        final String result;

        Signature(String[] inputs, String result) {
            this.inputs = inputs;
            this.result = result;
        }

        TypeInference inference(DataTypeFactory types, boolean accumulates) {
            TypeInference.Builder inference = TypeInference.newBuilder();
            if (inputs == null) {
                inference.inputTypeStrategy(InputTypeStrategies.WILDCARD);
            } else {
                List arguments = new ArrayList();
                for (int number = 0; number < inputs.length; number++) {
                    arguments.add(types.createDataType(inputs[number]));
                }
                inference.typedArguments(arguments);
            }
            if (accumulates) {
                inference.accumulatorTypeStrategy(TypeStrategies.explicit(DataTypes.BIGINT()));
            }
            DataType type = types.createDataType(result);
            return inference.outputTypeStrategy(TypeStrategies.explicit(type)).build();
        }
    }

    /** A function of the values of a row, which is called elsewhere. */
    public static class DeclaredScalar extends ScalarFunction {
        final Signature signature;

        DeclaredScalar(Signature signature) {
            this.signature = signature;
        }

        public Object eval(Object... values) {
            throw new UnsupportedOperationException();
        }

        public boolean supportsConstantFolding() {
            return false;
        }

        public TypeInference getTypeInference(DataTypeFactory types) {
            return signature.inference(types, false);
        }
    }

    /** A table function, which is called elsewhere. */
    public static class DeclaredTable extends TableFunction {
        final Signature signature;

        DeclaredTable(Signature signature) {
            this.signature = signature;
        }

        public void eval(Object... values) {
            throw new UnsupportedOperationException();
        }

        public TypeInference getTypeInference(DataTypeFactory types) {
            return signature.inference(types, false);
        }
    }

    /** An aggregate function, which is called elsewhere. */
    public static class DeclaredAggregate extends AggregateFunction {
        final Signature signature;

        DeclaredAggregate(Signature signature) {
            this.signature = signature;
        }

        public Object createAccumulator() {
            throw new UnsupportedOperationException();
        }

        public Object getValue(Object accumulator) {
            throw new UnsupportedOperationException();
        }

        public void accumulate(Object accumulator, Object... values) {
            throw new UnsupportedOperationException();
        }

        public void retract(Object accumulator, Object... values) {
            throw new UnsupportedOperationException();
        }

        public void merge(Object accumulator, Iterable others) {
            throw new UnsupportedOperationException();
        }

        public TypeInference getTypeInference(DataTypeFactory types) {
            return signature.inference(types, true);
        }
    }

    /** Makes the tables of every connector, as far as the planner sees them. */
    public static class Logs implements Module {
        public Optional getTableSourceFactory() {
            return Optional.of(new Factory());
        }

        public Optional getTableSinkFactory() {
            return Optional.of(new Factory());
        }
    }

    public static class Factory implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        public String factoryIdentifier() {
            return "logs";
        }

        public Set requiredOptions() {
            return Collections.emptySet();
        }

        public Set optionalOptions() {
            return Collections.emptySet();
        }

        public DynamicTableSource createDynamicTableSource(DynamicTableFactory.Context context) {
            Connector connector = new Connector(context);
            if (connector.isTopic) {
                return connector.hasComputedRowtime ? new Log(connector) : new Topic(connector);
            }
            return connector.isFiles ? new Log(connector) : new LookedUp(connector);
        }

        public DynamicTableSink createDynamicTableSink(DynamicTableFactory.Context context) {
            return new Sink(new Connector(context));
        }
    }

    /** What the options and columns of a table say about its connector. */
    static class Connector {
        final String name;
        final String format;
        final boolean isTopic;
        final boolean isFiles;
        final boolean hasComputedRowtime;
        final Map metadata = new LinkedHashMap();

        Connector(DynamicTableFactory.Context context) {
            Map options = context.getCatalogTable().getOptions();
            name = options.containsKey("connector") ? (String) options.get("connector") : "";
            Object found = options.containsKey("value.format") ? options.get("value.format") : options.get("format");
            format = found == null ? "" : (String) found;
            isTopic = name.equals("kafka") || name.equals("upsert-kafka") || name.matches("pulsar|kinesis.*");
            isFiles = name.equals("filesystem") || name.equals("datagen");
            ResolvedSchema schema = context.getCatalogTable().getResolvedSchema();
            boolean isComputed = false;
            for (Iterator each = schema.getColumns().iterator(); each.hasNext(); ) {
                Column column = (Column) each.next();
                if (column instanceof Column.MetadataColumn) {
                    String key = (String) ((Column.MetadataColumn) column).getMetadataKey().orElse(column.getName());
                    DataType ofKafka = isTopic ? (DataType) ofKafka().get(key) : null;
                    metadata.put(key, ofKafka == null ? column.getDataType() : ofKafka);
                }
                if (column instanceof Column.ComputedColumn && !schema.getWatermarkSpecs().isEmpty()) {
                    String rowtime =
                            ((org.apache.flink.table.catalog.WatermarkSpec) schema.getWatermarkSpecs().get(0))
                                    .getRowtimeAttribute();
                    isComputed = isComputed || column.getName().equals(rowtime);
                }
            }
            hasComputedRowtime = isComputed;
        }

        static Map ofKafka() {
            Map types = new HashMap();
            types.put("topic", DataTypes.STRING().notNull());
            types.put("partition", DataTypes.INT().notNull());
            types.put("offset", DataTypes.BIGINT().notNull());
            types.put("leader-epoch", DataTypes.INT());
            types.put("timestamp", DataTypes.TIMESTAMP_LTZ(3).notNull());
            types.put("timestamp-type", DataTypes.STRING().notNull());
            types.put("headers", DataTypes.MAP(DataTypes.STRING().notNull(), DataTypes.BYTES()).notNull());
            return types;
        }

        boolean isOfChanges() {
            return name.endsWith("-cdc") || format.matches("(debezium|canal|maxwell|ogg)-.*");
        }

        ChangelogMode sourceMode() {
            if (name.startsWith("upsert-")) {
                return upserts();
            }
            return isOfChanges() ? ChangelogMode.all() : ChangelogMode.insertOnly();
        }

        ChangelogMode sinkMode(ChangelogMode requested) {
            if (name.startsWith("upsert-") || name.equals("jdbc")) {
                return upserts();
            }
            if (name.equals("kafka") || isFiles) {
                return isOfChanges() ? ChangelogMode.all() : ChangelogMode.insertOnly();
            }
            if (name.equals("blackhole")) {
                ChangelogMode.Builder kinds = ChangelogMode.newBuilder();
                for (Iterator each = requested.getContainedKinds().iterator(); each.hasNext(); ) {
                    RowKind kind = (RowKind) each.next();
                    if (kind != RowKind.UPDATE_BEFORE) {
                        kinds.addContainedKind(kind);
                    }
                }
                return kinds.build();
            }
            return requested;
        }

        static ChangelogMode upserts() {
            return ChangelogMode.newBuilder()
                    .addContainedKind(RowKind.INSERT)
                    .addContainedKind(RowKind.UPDATE_AFTER)
                    .addContainedKind(RowKind.DELETE)
                    .build();
        }
    }

    public static class Log implements ScanTableSource, SupportsProjectionPushDown, SupportsReadingMetadata {
        final Connector connector;

        Log(Connector connector) {
            this.connector = connector;
        }

        public ChangelogMode getChangelogMode() {
            return connector.sourceMode();
        }

        public ScanTableSource.ScanRuntimeProvider getScanRuntimeProvider(ScanTableSource.ScanContext context) {
            return new SourceProvider() {
                public boolean isBounded() {
                    return false;
                }

                public Source createSource() { // for EXPLAIN, which makes the operators of a job, and runs none
                    return new NumberSequenceSource(0, 0);
                }
            };
        }

        public boolean supportsNestedProjection() {
            return false;
        }

        public void applyProjection(int[][] fields, DataType produced) {}

        public Map listReadableMetadata() {
            return connector.metadata;
        }

        public void applyReadableMetadata(List keys, DataType produced) {}

        public DynamicTableSource copy() {
            return new Log(connector);
        }

        public String asSummaryString() {
            return connector.name;
        }
    }

    /** A log whose connector generates watermarks by itself. */
    public static class Topic extends Log implements SupportsWatermarkPushDown {
        Topic(Connector connector) {
            super(connector);
        }

        public void applyWatermark(WatermarkStrategy strategy) {}

        public DynamicTableSource copy() {
            return new Topic(connector);
        }
    }

    /** A log whose connector can be asked for the rows of a key. */
    public static class LookedUp extends Log implements LookupTableSource {
        LookedUp(Connector connector) {
            super(connector);
        }

        public LookupTableSource.LookupRuntimeProvider getLookupRuntimeProvider(LookupTableSource.LookupContext context) {
            return new LookupFunctionProvider() {
                public LookupFunction createLookupFunction() {
                    return new NoLookup();
                }
            };
        }

        public DynamicTableSource copy() {
            return new LookedUp(connector);
        }
    }

    public static class NoLookup extends LookupFunction {
        public java.util.Collection lookup(RowData key) {
            throw new UnsupportedOperationException();
        }
    }

    public static class Sink implements DynamicTableSink, SupportsPartitioning, SupportsWritingMetadata {
        final Connector connector;

        Sink(Connector connector) {
            this.connector = connector;
        }

        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return connector.sinkMode(requested);
        }

        public DynamicTableSink.SinkRuntimeProvider getSinkRuntimeProvider(DynamicTableSink.Context context) {
            return new SinkV2Provider() {
                public org.apache.flink.api.connector.sink2.Sink createSink() { // as createSource
                    return new DiscardingSink();
                }
            };
        }

        public void applyStaticPartition(Map partition) {}

        public Map listWritableMetadata() {
            return connector.metadata;
        }

        public void applyWritableMetadata(List keys, DataType consumed) {}

        public DynamicTableSink copy() {
            return new Sink(connector);
        }

        public String asSummaryString() {
            return connector.name;
        }
    }
}
